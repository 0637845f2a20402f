#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lictor::bench {

/// One line of the table: what lictor reached, and what was measured beside it in the same run.
struct Row {
  enum class Wanted { kNothing, kRatioAtLeast, kRatioAtMost, kAtMost };

  std::string name;
  std::string unit;
  double lictor = 0;
  std::optional<double> other{};
  std::string against{};  ///< what `other` is
  Wanted wanted = Wanted::kNothing;
  double limit = 0;  ///< of the ratio; of kAtMost, of lictor's own figure

  [[nodiscard]] std::optional<double> ratio() const;
  /// std::nullopt where nothing is wanted.
  [[nodiscard]] std::optional<bool> met() const;
};

/// What all parts have measured. Not thread safe.
class Report {
 public:
  void add(Row row) { rows_.push_back(std::move(row)); }

  [[nodiscard]] std::string table() const;
  /// One document: the machine, and the rows with stable field names.
  [[nodiscard]] std::string json() const;

 private:
  std::vector<Row> rows_;
};

/// The processor, the number of cores, kernel, load, and how long the disk below the temporary
/// folder takes for a sync: Consul waits for one at every write, so a busy disk is seen there
/// first.
[[nodiscard]] std::string machine();

}  // namespace lictor::bench
