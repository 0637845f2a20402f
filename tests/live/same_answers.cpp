#include "same_answers.h"

#include <iterator>
#include <regex>
#include <stdexcept>
#include <utility>

#include "support.h"

namespace lictor::live {

std::unique_ptr<net::Transport> transport_to(const ConsulAgent& consul) {
  net::Options options;
  options.addresses = {consul.address()};
  auto opened = net::Transport::open(options);
  if (!opened) throw std::runtime_error{opened.error().message};
  return std::move(*opened);
}

http::Request request_of(std::string method, std::string target, std::string body) {
  http::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.body = std::move(body);
  request.timeout = patience();
  return request;
}

bool Names::same_index(std::uint64_t real, std::uint64_t model) {
  if (real == 0 || model == 0) return real == model;
  const auto [it, is_new] = indexes.try_emplace(real, model);
  if (!is_new) return it->second == model;
  const auto next = std::next(it);
  return (it == indexes.begin() || std::prev(it)->second < model) &&
         (next == indexes.end() || model < next->second);
}

static bool is_index(const std::string& name) {
  return name == "ModifyIndex" || name == "CreateIndex";
}

bool same_text(Names& names, const std::string& real, const std::string& model) {
  static const std::regex kIndexes{"(.*current modify index )([0-9]+) != ([0-9]+)"};
  std::smatch a;
  std::smatch b;
  if (!std::regex_match(real, a, kIndexes) || !std::regex_match(model, b, kIndexes)) {
    return real == model;
  }
  const auto number = [](const std::ssub_match& text) { return std::stoull(text.str()); };
  return a[1] == b[1] && names.same_index(number(a[2]), number(b[2])) &&
         names.same_index(number(a[3]), number(b[3]));
}

bool same_json(Names& names, const json& real, const json& model) {
  if (real.is_string() && model.is_string()) {
    return same_text(names, real.get<std::string>(), model.get<std::string>());
  }
  if (real.type() != model.type() || real.size() != model.size()) return false;
  if (real.is_array()) {
    for (std::size_t i = 0; i < real.size(); ++i) {
      if (!same_json(names, real[i], model[i])) return false;
    }
    return true;
  }
  if (!real.is_object()) return real == model;
  for (const auto& [name, value] : real.items()) {
    if (!model.contains(name)) return false;
    const json& other = model[name];
    if (is_index(name) ? !names.same_index(value, other) : !same_json(names, value, other)) {
      return false;
    }
  }
  return true;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace lictor::live
