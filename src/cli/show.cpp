#include <utility>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/dead_letters.h"
#include "cli/exit_code.h"
#include "cli/json_output.h"
#include "cli/printable.h"
#include "cli/task_json.h"
#include "cli/task_view.h"
#include "wire/json_text.h"

namespace lictor::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kNameWidth = 12;

class Sheet {
 public:
  explicit Sheet(const Console& console) : console_(console) {}

  void line(const std::string& name, const std::string& value, Style style = Style::kPlain) {
    if (value.empty()) return;
    const std::string gap(name.size() < kNameWidth ? kNameWidth - name.size() : 1, ' ');
    text_ += name + gap + console_.paint(printable(value), style) + '\n';
  }
  void block(const std::string& title, const std::string& text) {
    text_ += '\n' + console_.paint(title, Style::kBold) + '\n' + printable(text, true);
    if (!text_.ends_with('\n')) text_ += '\n';
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const Console& console_;
  std::string text_;
};

std::string time_line(const std::optional<WallTime>& time, WallTime now) {
  return time ? format_rfc3339(*time) + " (" + relative_time(*time, now) + ")" : std::string{};
}

std::string record_text(const std::string& record) {
  if (wire::parse_json(record)) return indented_json(record);
  return record.empty() ? "(no bytes)" : record;
}

std::string claim_text(const TaskView& view) {
  if (view.node.empty()) return {};
  return view.session.empty() ? view.node : view.node + ", session " + view.session;
}

std::string attempts_text(const TaskView& view) {
  if (view.attempt == 0) return {};
  std::string text = std::to_string(view.attempt);
  if (view.lost != 0) text += " (" + counted(view.lost, "owner") + " lost)";
  return text;
}

std::string sheet_of(const Console& console, const TaskView& view) {
  const WallTime now = wall_now();
  const bool dead = view.state == TaskState::kDead;
  Sheet sheet{console};
  sheet.line("id", view.id, Style::kBold);
  sheet.line("key", view.key);
  sheet.line("type", view.type);
  std::string state{state_text(view.state)};
  if (view.state == TaskState::kOrphan) {
    state += ": its owner does not lead any more; the next leader runs it again";
  } else if (view.state == TaskState::kUnreadable) {
    state += ": a leader makes it a dead letter";
  } else if (view.state == TaskState::kTooLarge) {
    state += ": never runs; write it smaller, or delete it";
  }
  sheet.line("state", state, dead ? Style::kRed : Style::kPlain);
  sheet.line("order", time_line(view.time, now));
  if (view.state == TaskState::kScheduled) sheet.line("due", time_line(view.due, now));
  sheet.line(dead ? "buried" : "since", time_line(view.since, now));
  sheet.line(dead ? "by" : "claimed by", claim_text(view));
  sheet.line("attempts", attempts_text(view));
  sheet.line("serial key", view.serial_key);
  sheet.line("reason", view.reason, Style::kRed);
  sheet.line("error", view.error, Style::kRed);
  sheet.line("index", "created " + std::to_string(view.create_index) + ", modified " +
                          std::to_string(view.modify_index));
  sheet.line("size", byte_text(view.record.size()));
  if (!view.output_tail.empty()) sheet.block("The end of its output", view.output_tail);

  const auto letter = dead ? wire::split_object(view.record) : wire::split_object("{}");
  bool shown = false;
  for (const wire::Member& member : letter.value_or(std::vector<wire::Member>{})) {
    if (member.name == "record") {
      sheet.block("Record", indented_json(member.value_text));
      shown = true;
    } else if (member.name == "raw" || member.name == "raw_base64") {
      const auto value = wire::parse_json(member.value_text);
      std::string bytes = value && value->is_string() ? value->get<std::string>() : std::string{};
      if (member.name == "raw_base64") bytes = base64_decode(bytes).value_or(bytes);
      sheet.block("Record, as it was", bytes.empty() ? "(no bytes)" : bytes);
      shown = true;
    }
  }
  if (!shown) sheet.block(dead ? "Value" : "Record", record_text(view.record));
  return sheet.text();
}

ordered_json json_of(const TaskView& view) {
  ordered_json told = task_json(view);
  told["session"] = view.session.empty() ? ordered_json{} : ordered_json(view.session);
  told["output_tail"] = view.output_tail.empty() ? ordered_json{} : ordered_json(view.output_tail);
  ordered_json value = ordered_json::parse(view.record, nullptr, false);
  if (!value.is_discarded()) {
    told["value"] = std::move(value);
  } else if (is_utf8(view.record)) {
    told["raw"] = view.record;
  } else {
    told["raw_base64"] = base64_encode(view.record);
  }
  return told;
}

}  // namespace

Result<int> show(const Client& client, const std::string& id) {
  std::vector<TaskView> views;
  auto task = client.store.get(client.layout.task_key(id));
  if (!task) return tl::unexpected(std::move(task.error()));
  if (*task) {
    const auto lock = client.store.get(client.layout.leader_key);
    TaskView view = view_task(client.layout, **std::move(task),
                              lock && *lock ? (*lock)->session : std::string{}, wall_now());
    if (!lock && view.state == TaskState::kOrphan) view.state = TaskState::kRunning;
    views.push_back(std::move(view));
  }
  auto letters = dead_letters_of(client, id);
  if (!letters && views.empty()) return tl::unexpected(std::move(letters.error()));
  if (!letters) client.console.complain(letters.error().message);
  for (TaskView& letter : letters.value_or(std::vector<TaskView>{})) {
    views.push_back(std::move(letter));
  }
  if (views.empty()) {
    return fail(ErrorCode::kNotFound, "no task " + printable(id) + " in queue \"" + client.queue +
                                          "\", neither waiting nor dead (looked at " +
                                          printable(client.layout.task_key(id)) + " and below " +
                                          client.layout.dead_prefix +
                                          "); a task that is done is gone");
  }
  if (client.json) {
    ordered_json all = ordered_json::array();
    for (const TaskView& view : views) all.push_back(json_of(view));
    client.console.print(
        json_document({{"queue", client.queue}, {"id", id}, {"tasks", std::move(all)}}));
    return kDone;
  }
  for (const TaskView& view : views) {
    if (&view != &views.front()) client.console.print("\n---\n\n");
    client.console.print(sheet_of(client.console, view));
  }
  return kDone;
}

}  // namespace lictor::cli
