// submit --ndjson: a task a line, 64 of them a transaction.
//
//   line --complete--> batch --create--> written, or refused one by one
//     |                                     |
//     +-- not a task --> refused            +-- Consul away --> tried again for a while, then stop

#include <cerrno>
#include <fstream>
#include <iostream>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/line_reader.h"
#include "client/batch.h"
#include "client/new_record.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto kProgressAfter = 1s;
constexpr auto kProgressEvery = 200ms;
constexpr auto kProgressLineEvery = 10s;  // where nobody looks at a terminal
constexpr std::size_t kMaxShown = 100;    // refusals; the summary counts them all

class Submission {
 public:
  Submission(const Client& client, const SubmitManyOptions& options)
      : client_(client),
        ids_(random_seed()),
        completer_(options.type, ids_),
        batch_(client.store, [this](const Error& error) {
          client_.console.complain(error.message + "; trying again for a while");
        }) {}

  Result<int> run(std::istream& in) {
    LineReader lines{in};
    while (auto line = lines.next()) {
      auto task = completer_.complete(*line, wall_now());
      if (!task) {
        refuse(lines.number(), task.error().message);
        continue;
      }
      Store::Record record{client_.layout.task_key(task->id), std::move(task->record)};
      if (!batch_.fits(record)) {
        if (auto sent = send(); !sent) return stopped(sent.error());
      }
      batch_.add(std::move(record));
      numbers_.push_back(lines.number());
      tasks_.push_back(std::move(task->id));
    }
    if (auto sent = send(); !sent) return stopped(sent.error());
    if (lines.failed()) {
      return stopped(
          {ErrorCode::kFailed, "cannot read on after line " + std::to_string(lines.number())});
    }
    return finish();
  }

 private:
  // Writes the batch. What was written and what was refused is settled then; after an error none
  // of it is.
  Result<void> send() {
    if (batch_.empty()) return {};
    auto created = batch_.write();
    // Too large for Consul is only ever the single record of its batch.
    if (!created && created.error().code == ErrorCode::kTooLarge && batch_.size() == 1) {
      refuse(numbers_.front(), created.error().message);
      batch_.clear();
    } else if (!created) {
      return tl::unexpected(std::move(created.error()));
    } else {
      settle(created->existing);
    }
    numbers_.clear();
    tasks_.clear();
    tell_progress();
    return {};
  }

  void settle(const std::vector<std::size_t>& existing) {
    auto next = existing.begin();
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (next != existing.end() && *next == i) {
        ++next;
        refuse(numbers_[i], "taskId: \"" + printable(tasks_[i]) + "\" exists already");
        continue;
      }
      ++written_;
      if (client_.json) {
        written_ids_.push_back(tasks_[i]);
      } else {
        client_.console.print(tasks_[i] + '\n');
      }
    }
  }

  void refuse(std::size_t line, const std::string& why) {
    ++refused_;
    const std::string shown = printable(why);
    if (refused_ <= kMaxShown) {
      client_.console.complain("line " + std::to_string(line) + ": " + shown);
    } else if (refused_ == kMaxShown + 1) {
      client_.console.complain("further lines are refused, and only counted from here on");
    }
    if (client_.json) refusals_.push_back({{"line", line}, {"error", why}});
  }

  void tell_progress() {
    const Instant now = boot_now();
    const bool terminal = client_.console.err_terminal().is_terminal;
    if (now - started_ < kProgressAfter || now < next_progress_) return;
    next_progress_ = now + (terminal ? Duration{kProgressEvery} : Duration{kProgressLineEvery});
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const auto rate = static_cast<std::size_t>(static_cast<double>(written_) / seconds);
    const std::string line = counts() + ", " + std::to_string(rate) + "/s";
    if (terminal) {
      client_.console.progress(line);
    } else if (now - started_ >= kProgressLineEvery) {
      client_.console.note(line);
    }
  }

  [[nodiscard]] std::string counts() const {
    std::string text = counted(written_, "task") + " written";
    if (refused_ != 0) text += ", " + std::to_string(refused_) + " refused";
    return text;
  }

  Result<int> finish() {
    if (client_.json) {
      client_.console.print(json_document({{"queue", client_.queue},
                                           {"written", written_},
                                           {"refused", refused_},
                                           {"ids", written_ids_},
                                           {"errors", refusals_}}));
    }
    client_.console.note(counts());
    return refused_ == 0 ? kDone : kFailed;
  }

  // Ends in the middle: says what is certain, so that the rest can be sent again.
  Result<int> stopped(Error error) {
    std::string where;
    if (!numbers_.empty()) {
      where = numbers_.size() == 1 ? "line " + std::to_string(numbers_.front()) + ": "
                                   : "lines " + std::to_string(numbers_.front()) + " to " +
                                         std::to_string(numbers_.back()) + ": ";
    }
    error.message = where + error.message;
    if (!numbers_.empty()) {
      error.message += "; all before are settled, none after was sent";
    }
    static_cast<void>(finish());
    return tl::unexpected(std::move(error));
  }

  const Client& client_;
  client::TaskIds ids_;
  client::RecordCompleter completer_;

  client::Batch batch_;
  // Of the batch's records, the line and the id.
  std::vector<std::size_t> numbers_;
  std::vector<std::string> tasks_;

  std::size_t written_ = 0;
  std::size_t refused_ = 0;
  std::vector<std::string> written_ids_;  // for --json
  std::vector<ordered_json> refusals_;    // for --json
  const Instant started_ = boot_now();
  Instant next_progress_{};
};

}  // namespace

Result<int> submit_many(const Client& client, const SubmitManyOptions& options) {
  Submission submission{client, options};
  if (options.file == "-") {
    std::ios::sync_with_stdio(false);  // else each character is read by itself
    return submission.run(std::cin);
  }
  errno = 0;
  std::ifstream in{options.file};
  if (!in) {
    return fail(ErrorCode::kInvalid, "--ndjson: cannot open " + printable(options.file) + ": " +
                                         std::generic_category().message(errno));
  }
  return submission.run(in);
}

}  // namespace lictor::cli
