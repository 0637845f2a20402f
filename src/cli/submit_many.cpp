// submit --ndjson: a task a line, 63 of them a transaction, several transactions under way.
//
//   line --complete--> writer ----> written, or refused one by one
//     |                   |
//     +-- not a task      +-- Consul away --> tried again for a while, then stop

#include <cerrno>
#include <deque>
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
#include "client/new_record.h"
#include "client/record_writer.h"

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
        writer_(
            {client.store, client.queue, client.layout},
            [this](const auto& settled) { settle(settled); },
            [this](const Error& error) {
              client_.console.complain(error.message + "; trying again for a while");
            },
            options.order) {}

  Result<int> run(std::istream& in) {
    LineReader lines{in};
    while (auto line = lines.next()) {
      auto task = completer_.complete(*line, wall_now());
      if (!task) {
        not_sent_.push_back({lines.number(), std::move(task.error().message)});
        if (sent_.empty()) refuse_before(lines.number() + 1);
        continue;
      }
      sent_.push_back({lines.number(), task->id});
      writer_.add(std::move(*task));
      if (writer_.stopped()) break;
    }
    writer_.finish();
    refuse_before(lines.number() + 1);
    if (writer_.stopped()) return stopped(*writer_.stopped());
    if (lines.failed()) {
      return stopped(
          {ErrorCode::kFailed, "cannot read on after line " + std::to_string(lines.number())});
    }
    return finish();
  }

 private:
  struct Line {
    std::size_t number = 0;
    std::string id;
  };
  struct Refusal {
    std::size_t line = 0;
    std::string why;
  };

  void settle(const client::RecordWriter::Settled& settled) {
    const std::size_t end = settled.first + settled.count;
    if (settled.created) {
      auto next = settled.created->existing.begin();
      for (std::size_t i = settled.first; i < end; ++i) {
        Line& line = line_of(i);
        refuse_before(line.number);
        if (next != settled.created->existing.end() && settled.first + *next == i) {
          ++next;
          refuse(line.number, "taskId: \"" + printable(line.id) + "\" exists already");
        } else {
          written(std::move(line.id));
        }
      }
    } else if (settled.created.error().code == ErrorCode::kTooLarge) {
      refuse_before(line_of(settled.first).number);
      refuse(line_of(settled.first).number, settled.created.error().message);
    } else {
      doubt(line_of(settled.first).number, line_of(end - 1).number);
    }
    last_settled_ = line_of(end - 1).number;
    sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(end - forgotten_));
    forgotten_ = end;
    tell_progress();
  }

  // All before are settled and forgotten.
  [[nodiscard]] Line& line_of(std::size_t place) { return sent_[place - forgotten_]; }

  void written(std::string id) {
    ++written_;
    if (client_.json) {
      written_ids_.push_back(std::move(id));
    } else {
      client_.console.print(std::move(id) + '\n');
    }
  }

  void doubt(std::size_t first, std::size_t last) {
    if (!doubtful_.empty() && doubtful_.back().second + 1 == first) {
      doubtful_.back().second = last;
    } else {
      doubtful_.emplace_back(first, last);
    }
  }

  // What is no task is told in its turn among the others.
  void refuse_before(std::size_t line) {
    while (!not_sent_.empty() && not_sent_.front().line < line) {
      refuse(not_sent_.front().line, not_sent_.front().why);
      not_sent_.pop_front();
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
    std::string lines;
    for (const auto& [first, last] : doubtful_) {
      lines += (lines.empty() ? "" : ", ") + std::string{first == last ? "line " : "lines "} +
               std::to_string(first) + (first == last ? "" : " to " + std::to_string(last));
    }
    if (!lines.empty()) {
      error.message = lines + ": " + error.message;
      error.message += last_settled_ > doubtful_.back().second
                           ? "; all others up to line " + std::to_string(last_settled_) +
                                 " are settled, none after was sent"
                           : "; all before are settled, none after was sent";
    }
    static_cast<void>(finish());
    return tl::unexpected(std::move(error));
  }

  const Client& client_;
  client::TaskIds ids_;
  client::RecordCompleter completer_;

  std::deque<Line> sent_;  // and not settled
  std::deque<Refusal> not_sent_;
  std::size_t forgotten_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> doubtful_;  // first and last line
  std::size_t last_settled_ = 0;                               // a line

  std::size_t written_ = 0;
  std::size_t refused_ = 0;
  std::vector<std::string> written_ids_;  // for --json
  std::vector<ordered_json> refusals_;    // for --json
  const Instant started_ = boot_now();
  Instant next_progress_{};

  client::RecordWriter writer_;
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
