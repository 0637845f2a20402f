#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/console.h"
#include "client/locks.h"
#include "client/store.h"
#include "cluster/diagnosis.h"

namespace lictor::cli {

/// The findings of `check`, in order.
class Report {
 public:
  enum class Status { kOk, kWarn, kFail };
  struct Line {
    Status status;
    std::string name;  ///< "consul", "queue default: rights"
    std::string detail;
    std::string remedy;  ///< empty: none needed
    ErrorCode code;      ///< of a failure
  };

  void ok(std::string name, std::string detail);
  void warn(std::string name, std::string detail, std::string remedy);
  void fail(std::string name, std::string detail, std::string remedy,
            ErrorCode code = ErrorCode::kFailed);
  /// An error fails, a warning warns.
  void add(std::string name, const cluster::Finding& finding);
  /// A failed request, whose message says what to do.
  void fail(std::string name, const Error& error);

  /// Names the queue in the commands that the lines from `first` on suggest.
  void name_queue(std::size_t first, const std::string& queue);

  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  /// Of the first failure: the later ones often follow from it.
  [[nodiscard]] std::optional<ErrorCode> first_failure() const;
  [[nodiscard]] bool warned() const;

  [[nodiscard]] Page page() const;
  [[nodiscard]] std::string json() const;

 private:
  std::vector<Line> lines_;
};

struct Fault {
  std::string what;
  std::string remedy;
};

/// The address that the other checks ask.
struct Reached {
  std::unique_ptr<net::Transport> transport;  ///< none: no address answers
  std::string node;                           ///< of its agent; empty: not known
};
/// The checks of each address, and of the Consul behind the first that answers.
[[nodiscard]] Reached check_consul(const CheckOptions& options, const Console& console,
                                   Report& report);
/// What is known to go wrong with this version of Consul. `is_server`: the agent is a server.
[[nodiscard]] std::vector<Fault> version_faults(std::string_view version, bool is_server);
/// The checks of the agent at `address`, for a daemon.
void check_agent(const CheckOptions& options, const std::string& address, const Store::Agent& agent,
                 Report& report);
/// Whether Consul, and what stands before it, takes every name below `prefix` that a producer may
/// give.
void check_names(Store& store, const std::string& prefix, Report& report);

/// The checks of one queue. `agent_node`: the Consul node whose agent is asked; empty: not known.
/// `serves`: a daemon is to run with this token.
void check_queue(Store& store, const CheckOptions::Queue& queue, const std::string& agent_node,
                 bool serves, Report& report);

/// Who leads, how soon another daemon would, and how many partitions the members ask for. `serves`:
/// as above.
void check_leaders(Store& store, const CheckOptions::Queue& queue, bool serves,
                   const client::Locks& locks, Report& report);

/// The checks of a queue's schedules, stored and configured. `serves`: as above.
void check_schedules(Store& store, const CheckOptions::Queue& queue, bool serves,
                     const cluster::TypeFault& type_fault, Report& report);

/// How soon another daemon leads the queue when its leader dies, hangs, or loses its host, in one
/// line.
[[nodiscard]] std::string takeover_text(const core::QueueOptions& options,
                                        const std::vector<std::string>& session_checks,
                                        Duration hang_timeout);

}  // namespace lictor::cli
