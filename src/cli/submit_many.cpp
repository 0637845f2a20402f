// submit --ndjson: a task a line, as many a transaction as Consul takes, several under way.
//
//   line --complete--> writer ----> written, or refused one by one
//     |                   |
//     +-- not a task      +-- Consul away --> tried again for a while, then stop
//
// A line is settled when its fate is known: written, refused, or in doubt. Lines are settled in
// their order, so the output is complete up to some line. If the command ends early, by a signal, a
// full disk or a Consul that is away, it says which lines were not written, which are in doubt, and
// after which none was sent: its caller must know which lines to send again.
//
// A pipe that pauses must not hold up its tasks: 200 ms after a line, LineReader calls back, and
// all that was read is written and printed.
//
// Memory is bounded: only lines that are not settled are kept, and with --json the ids.

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/errno_text.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/unique_fd.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/new_task.h"
#include "cli/process.h"
#include "client/record_writer.h"
#include "wire/record.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;
using namespace std::chrono_literals;

constexpr auto kProgressAfter = 1s;
constexpr auto kProgressEvery = 200ms;
constexpr std::size_t kMaxRefusalsShown = 100;  // refusals; the summary counts them all

class Submission {
 public:
  Submission(const Client& client, const std::string& type, SubmitOrder order)
      : client_(client),
        type_(type),
        ids_(random_seed()),
        writer_(
            {client.store, client.queue, client.layout},
            [this](const auto& settled) { settle(settled); },
            [this](const Error& error) {
              client_.console.report_error(error.message + "; trying again for a while");
            },
            order) {}

  Result<int> run(int file, const std::string& name) {
    catch_signals(SecondSignal::kEndsAtOnce);
    LineReader lines{file,
                     [&] {
                       settle_all(lines.number());
                       return !writer_.stopped();
                     },
                     interruption_fd()};
    while (auto line = lines.next()) {
      auto task = client::complete_record(*line, type_, wall_now(), ids_);
      if (!task) {
        not_sent_.push_back({lines.number(), std::move(task.error().message)});
        if (sent_.empty()) refuse_before(lines.number() + 1);
        continue;
      }
      if (!misspelt_reported_) report_misspelt(lines.number(), task->record);
      sent_.push_back({lines.number(), task->id});
      writer_.add(std::move(*task));
      if (writer_.stopped()) break;
    }
    settle_all(lines.number());
    if (writer_.stopped()) return stopped(*writer_.stopped());
    if (lines.error() != 0) {
      const std::string why = errno_text(lines.error());
      if (lines.number() == 0)
        return fail(ErrorCode::kInvalid, "--ndjson: cannot read " + name + ": " + why);
      return stopped({ErrorCode::kFailed,
                      fmt::format("cannot read on after line {}: {}", lines.number(), why)});
    }
    if (lines.stopped()) {
      return stopped(
          {ErrorCode::kFailed, fmt::format("interrupted after line {}", lines.number())});
    }
    show_progress(std::nullopt);
    flush_keep_progress();
    if (lost_output_) {
      return fail(lost_output_->code, lost_output_->message + "; the tasks are written");
    }
    return refused_ == 0 ? kDone : kFailed;
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

  // Lines without a gap, as for "lines 3 to 40".
  struct Run {
    std::size_t first = 0, last = 0;  // lines
    std::vector<std::string> ids{};   // for --json
  };
  using Runs = std::vector<Run>;

  // Reports only the first such line, since the others are usually alike.
  void report_misspelt(std::size_t line, std::string_view record) {
    const std::string fields = wire::misspelt_fields(record);
    if (fields.empty()) return;
    misspelt_reported_ = true;
    client_.console.report_note(
        fmt::format("line {}: {} lictor keeps such a field, and it has no effect", line, fields));
  }

  // The lines up to this one must not wait for the next line.
  void settle_all(std::size_t line) {
    writer_.finish();
    refuse_before(line + 1);
    client_.console.end_progress();
    flush_keep_progress();
  }

  // Flushes, so that a killed process has printed all ids so far, in whole lines.
  void flush_keep_progress() {
    if (auto arrived = client_.console.flush_keep_progress(); !arrived)
      lost_output_ = arrived.error();
  }

  // The writer numbers the records from 0; `forgotten_` of them have left sent_.
  void settle(const client::RecordWriter::Settled& settled) {
    const std::size_t end = settled.first + settled.count;
    if (settled.created) {
      auto next = settled.created->existing.begin();
      for (std::size_t i = settled.first; i < end; ++i) {
        Line& line = line_of(i);
        refuse_before(line.number);
        if (next != settled.created->existing.end() && settled.first + *next == i) {
          ++next;
          refuse(line.number, "taskId: \"" + line.id + "\" exists already");
        } else {
          written(std::move(line.id));
        }
      }
    } else if (settled.created.error().code == ErrorCode::kTooLarge) {  // a single record
      refuse_before(line_of(settled.first).number);
      refuse(line_of(settled.first).number, settled.created.error().message);
    } else {
      const bool in_doubt = settled.created.error().code == ErrorCode::kTimeout;
      Run run{line_of(settled.first).number, line_of(end - 1).number};
      for (std::size_t i = settled.first; i < end; ++i) run.ids.push_back(line_of(i).id);
      add_run(in_doubt ? in_doubt_ : not_written_, std::move(run));
    }
    last_settled_ = line_of(end - 1).number;
    sent_.erase(sent_.begin(), sent_.begin() + static_cast<std::ptrdiff_t>(end - forgotten_));
    forgotten_ = end;
    flush_keep_progress();
    update_progress();
  }

  // All lines before it are settled and forgotten.
  [[nodiscard]] Line& line_of(std::size_t place) { return sent_[place - forgotten_]; }

  void written(std::string id) {
    ++written_;
    if (client_.json) {
      written_ids_.push_back(std::move(id));
    } else {
      client_.console.print_line(id);
    }
  }

  static void add_run(Runs& runs, Run run) {
    if (!runs.empty() && runs.back().last + 1 == run.first) {
      runs.back().last = run.last;
      std::move(run.ids.begin(), run.ids.end(), std::back_inserter(runs.back().ids));
    } else {
      runs.push_back(std::move(run));
    }
  }

  static std::string text_of(const Runs& runs) {
    std::vector<std::string> texts;
    for (const auto& [first, last, ids] : runs) {
      texts.push_back(first == last ? fmt::format("line {}", first)
                                    : fmt::format("lines {} to {}", first, last));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  static ordered_json json_of(const Runs& runs) {
    return json_list(runs, [](const Run& run) -> ordered_json {
      return {{"first", run.first}, {"last", run.last}, {"ids", run.ids}};
    });
  }

  // Reports bad lines in their place among the others.
  void refuse_before(std::size_t line) {
    while (!not_sent_.empty() && not_sent_.front().line < line) {
      refuse(not_sent_.front().line, not_sent_.front().why);
      not_sent_.pop_front();
    }
  }

  // A mistake in a generator of lines makes thousands of equal refusals: the first hundred are
  // shown.
  void refuse(std::size_t line, const std::string& why) {
    ++refused_;
    if (refused_ <= kMaxRefusalsShown) {
      client_.console.report_error("line " + std::to_string(line) + ": " + why);
    } else if (refused_ == kMaxRefusalsShown + 1) {
      client_.console.report_error("more lines are refused; from here on they are only counted");
    }
    if (client_.json) refusals_.push_back({{"line", line}, {"error", why}});
  }

  void update_progress() {
    const Instant now = boot_now();
    if (now - started_ < kProgressAfter || now < next_progress_) return;
    next_progress_ = now + kProgressEvery;
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const auto rate = static_cast<std::size_t>(static_cast<double>(written_) / seconds);
    client_.console.progress(fmt::format("{}, {}/s", counts(), rate));
  }

  [[nodiscard]] std::string counts() const {
    std::string text = counted(written_, "task") + " written";
    if (refused_ != 0) text += fmt::format(", {} refused", refused_);
    return text;
  }

  // `error`: why the command ended before the last line.
  void show_progress(const std::optional<std::string>& error) {
    if (client_.json) {
      print_json(client_, {{"written", written_},
                           {"refused", refused_},
                           {"ids", written_ids_},
                           {"errors", refusals_},
                           {"in_doubt", json_of(in_doubt_)},
                           {"not_written", json_of(not_written_)},
                           {"not_sent_after", error ? ordered_json(last_settled_) : nullptr},
                           {"error", error ? ordered_json(*error) : nullptr}});
    }
    client_.console.note(counts());
  }

  // Ends before the last line: reports what is certain, so that the rest can be sent again.
  Result<int> stopped(Error error) {
    std::string text;
    if (!in_doubt_.empty()) text = text_of(in_doubt_) + ": unknown whether they were written; ";
    if (!not_written_.empty()) text += text_of(not_written_) + ": not written; ";
    const bool any = !text.empty();
    text += error.message;
    if (any && written_ + refused_ != 0) {
      text += fmt::format("; all others up to line {} are settled", last_settled_);
    }
    if (any) text += fmt::format("; none after line {} was sent", last_settled_);
    if (lost_output_) text += "; " + lost_output_->message;
    error.message = std::move(text);
    show_progress(error.message);
    return tl::unexpected(std::move(error));
  }

  const Client& client_;
  const std::string& type_;
  client::TaskIds ids_;

  std::deque<Line> sent_;  // sent but not settled
  std::deque<Refusal> not_sent_;
  std::size_t forgotten_ = 0;
  Runs in_doubt_, not_written_;
  std::optional<Error> lost_output_;
  bool misspelt_reported_ = false;
  std::size_t last_settled_ = 0;  // a line

  std::size_t written_ = 0;
  std::size_t refused_ = 0;
  std::vector<std::string> written_ids_;  // for --json
  std::vector<ordered_json> refusals_;    // for --json
  const Instant started_ = boot_now();
  Instant next_progress_{};

  client::RecordWriter writer_;
};

}  // namespace

Result<int> submit_many(const Client& client, const std::string& file, const std::string& type,
                        SubmitOrder order) {
  Submission submission{client, type, order};
  if (file == "-") return submission.run(STDIN_FILENO, "standard input");
  const UniqueFd opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (opened) return submission.run(opened.get(), file);
  return fail(ErrorCode::kInvalid, "--ndjson: cannot open " + file + ": " + errno_text());
}

}  // namespace lictor::cli
