#include "cluster/leader_status.h"

#include <algorithm>
#include <utility>

#include "base/json_text.h"

namespace lictor::cluster {
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

// Whether the members that are read here, and by diagnose(), have the types that they should have.
bool is_status(const json& status) {
  for (const auto& [name, value] : status.items()) {
    const bool fits = name.ends_with("_ms")    ? value.is_number_integer()
                      : name == "cannot_start" ? value.is_string()
                      : name == "log_error"    ? value.is_string()
                      : name == "role"         ? value.is_string()
                      : name == "running"      ? is_count(value)
                      : name == "waiting"      ? is_count_or_null(value)
                      : name == "partitions"   ? is_count_or_null(value)
                      : name == "leads"        ? value.is_array() && all_counts(value)
                      : name == "states"       ? value.is_object() && all_counts(value)
                      : name == "schedules"    ? value.is_object() && all_counts(value)
                      : name == "types"        ? value.is_array()
                      : name == "activity"     ? is_activity(value)
                      : name == "by_type"      ? is_by_type(value)
                      : name == "workers"      ? is_by_type(value)
                                               : true;
    if (!fits) return false;
  }
  return true;
}

// Medians cannot be added up, so the longest delay counts.
void add_list(ordered_json& into, const ordered_json& from, bool is_delay) {
  for (std::size_t i = 0; i < std::min(into.size(), from.size()); ++i) {
    if (!is_count(from[i])) continue;
    const auto own = is_count(into[i]) ? into[i].get<std::uint64_t>() : 0;
    const auto other = from[i].get<std::uint64_t>();
    into[i] = is_delay ? std::max(own, other) : own + other;
  }
}

void keep_common(ordered_json& types, const ordered_json& others) {
  std::erase_if(types.get_ref<ordered_json::array_t&>(), [&](const ordered_json& type) {
    return std::find(others.begin(), others.end(), type) == others.end();
  });
}

}  // namespace

// A field of another type refuses the whole status, since merged() and diagnose() rely on the form.
ordered_json read_status(const std::string& answer) {
  const auto parsed = parse_json(answer);
  const json queues = parsed && parsed->is_object() ? parsed->value("queues", json{}) : json{};
  const bool fits =
      queues.is_array() && !queues.empty() && queues[0].is_object() && is_status(queues[0]);
  return fits ? ordered_json(queues[0]) : ordered_json{};
}

void add_status(ordered_json& into, const ordered_json& from) {
  for (const auto& [name, value] : from.items()) {
    ordered_json& own = into[name];
    // While one leader stops, the others go on; a queue is paused if one says so.
    if (own.is_null() || value == true || value == "leading") {
      own = value;
    } else if (own.is_object() && value.is_object()) {
      add_status(own, value);
    } else if (own.is_array() && value.is_array()) {
      if (name == "types") {
        keep_common(own, value);
      } else if (name == "leads") {
        own.insert(own.end(), value.begin(), value.end());
        std::sort(own.begin(), own.end());
      } else {
        add_list(own, value, name.starts_with("delay_"));
      }
    } else if (name == "lease_left_ms") {
      own = std::min(own, value);
    } else if (name.ends_with("_ms") && name != "took_ms") {
      own = std::max(own, value);
    } else if (is_count(own) && is_count(value) && name != "partitions" && name != "minutes") {
      own = own.get<std::uint64_t>() + value.get<std::uint64_t>();
    }
  }
}

ordered_json merged(const std::vector<LeaderStatus>& leaders) {
  ordered_json all;
  for (const LeaderStatus& leader : leaders) {
    ordered_json own = leader.status;
    for (const char* name : {"cannot_start", "log_error"}) {
      if (own.contains(name)) own[name] = leader.node + ": " + own[name].get<std::string>();
    }
    add_status(all, own);
  }
  return all;
}

}  // namespace lictor::cluster
