#include "admin/leaders.h"

#include <algorithm>
#include <utility>

#include "wire/json_text.h"

namespace lictor::admin {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class Json>
bool is_count(const Json& value) {
  return value.is_number_unsigned() ||
         (value.is_number_integer() && value.template get<std::int64_t>() >= 0);
}
bool is_count_or_null(const json& value) { return value.is_null() || is_count(value); }
bool all_counts(const json& values) {
  return std::all_of(values.begin(), values.end(), is_count<json>);
}

bool is_activity(const json& activity) {
  if (!activity.is_object()) return false;
  return std::all_of(activity.begin(), activity.end(), [](const json& value) {
    return value.is_array()    ? std::all_of(value.begin(), value.end(), is_count_or_null)
           : value.is_object() ? all_counts(value)
                               : is_count(value);
  });
}

bool is_by_type(const json& types) {
  return types.is_object() && std::all_of(types.begin(), types.end(), [](const json& figures) {
           return figures.is_object() && all_counts(figures);
         });
}

// Whether the members that are read here have the types that they should have.
bool is_status(const json& status) {
  for (const auto& [name, value] : status.items()) {
    const bool fits = name.ends_with("_ms")     ? value.is_number_integer()
                      : name == "cannot_start"  ? value.is_string()
                      : name == "log_error"     ? value.is_string()
                      : name == "role"          ? value.is_string()
                      : name == "running"       ? is_count(value)
                      : name == "unacked"       ? is_count(value)
                      : name == "waiting"       ? is_count_or_null(value)
                      : name == "claimed_ahead" ? is_count_or_null(value)
                      : name == "partitions"    ? is_count_or_null(value)
                      : name == "leads"         ? value.is_array() && all_counts(value)
                      : name == "states"        ? value.is_object() && all_counts(value)
                      : name == "schedules"     ? value.is_object() && all_counts(value)
                      : name == "types"         ? value.is_array()
                      : name == "activity"      ? is_activity(value)
                      : name == "by_type"       ? is_by_type(value)
                      : name == "workers"       ? is_by_type(value)
                                                : true;
    if (!fits) return false;
  }
  return true;
}

std::uint64_t count_in(const ordered_json& value, const std::string& name) {
  const auto found = value.find(name);
  return found != value.end() && is_count(*found) ? found->get<std::uint64_t>() : 0;
}

void add_counts(ordered_json& into, const ordered_json& from) {
  if (into.is_null()) into = ordered_json::object();
  for (const auto& [name, value] : from.items()) {
    into[name] = count_in(into, name) + count_in(from, name);
  }
}

// The median of two hosts does not follow from those of each: of delays the longest is taken.
void add_list(ordered_json& into, const ordered_json& from, bool is_delay) {
  for (std::size_t i = 0; i < std::min(into.size(), from.size()); ++i) {
    if (!is_count(from[i])) continue;
    const auto own = is_count(into[i]) ? into[i].get<std::uint64_t>() : 0;
    const auto other = from[i].get<std::uint64_t>();
    into[i] = is_delay ? std::max(own, other) : own + other;
  }
}

void add_activity(ordered_json& into, const ordered_json& from) {
  for (const auto& [name, value] : from.items()) {
    ordered_json& own = into[name];
    if (own.is_array() && value.is_array()) {
      add_list(own, value, name.starts_with("delay_"));
    } else if (own.is_object() && value.is_object()) {
      add_counts(own, value);
    } else if (own.is_null()) {
      own = value;
    }
  }
}

void add_by_type(ordered_json& into, const ordered_json& from) {
  for (const auto& [type, figures] : from.items()) {
    ordered_json& own = into[type];
    const std::uint64_t longest =
        std::max(own.is_null() ? 0 : count_in(own, "longest_ms"), count_in(figures, "longest_ms"));
    add_counts(own, figures);
    own["longest_ms"] = longest;
  }
}

void keep_common(ordered_json& types, const ordered_json& others) {
  ordered_json common = ordered_json::array();
  for (const ordered_json& type : types) {
    if (std::find(others.begin(), others.end(), type) != others.end()) common.push_back(type);
  }
  types = std::move(common);
}

void add(ordered_json& into, const ordered_json& from) {
  for (const char* name : {"waiting", "claimed_ahead", "running", "unacked"}) {
    into[name] = count_in(into, name) + count_in(from, name);
  }
  for (const char* name : {"oldest_due_ms", "longest_running_ms"}) {
    into[name] = std::max(into.value(name, std::int64_t{0}), from.value(name, std::int64_t{0}));
  }
  if (from.contains("lease_left_ms")) {
    const auto left = from["lease_left_ms"].get<std::int64_t>();
    into["lease_left_ms"] = std::min(into.value("lease_left_ms", left), left);
  }
  // While one leader stops, the others go on.
  if (from.value("role", "") == "leading") into["role"] = "leading";
  if (from.contains("paused") && from["paused"] == true) into["paused"] = true;
  for (const char* name : {"states", "schedules"}) {
    if (from.contains(name)) add_counts(into[name], from[name]);
  }
  if (from.contains("leads")) {
    ordered_json& leads = into["leads"];
    if (leads.is_null()) leads = ordered_json::array();
    leads.insert(leads.end(), from["leads"].begin(), from["leads"].end());
    std::sort(leads.begin(), leads.end());
  }
  if (from.contains("types")) keep_common(into["types"], from["types"]);
  if (from.contains("activity")) add_activity(into["activity"], from["activity"]);
  if (from.contains("by_type")) add_by_type(into["by_type"], from["by_type"]);
  if (from.contains("workers")) {
    for (const auto& [type, counts] : from["workers"].items()) {
      add_counts(into["workers"][type], counts);
    }
  }
  for (const char* name : {"cannot_start", "log_error"}) {
    if (from.contains(name) && !into.contains(name)) into[name] = from[name];
  }
}

}  // namespace

ordered_json read_status(const std::string& answer) {
  const auto parsed = wire::parse_json(answer);
  const json queues = parsed && parsed->is_object() ? parsed->value("queues", json{}) : json{};
  const bool fits =
      queues.is_array() && !queues.empty() && queues[0].is_object() && is_status(queues[0]);
  return fits ? ordered_json(queues[0]) : ordered_json{};
}

ordered_json merged(const std::vector<LeaderStatus>& leaders) {
  ordered_json all;
  for (const LeaderStatus& leader : leaders) {
    ordered_json own = leader.status;
    for (const char* name : {"cannot_start", "log_error"}) {
      if (own.contains(name)) own[name] = leader.node + ": " + own[name].get<std::string>();
    }
    if (all.is_null()) {
      all = std::move(own);
    } else {
      add(all, own);
    }
  }
  return all;
}

}  // namespace lictor::admin
