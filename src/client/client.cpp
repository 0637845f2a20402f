#include "client/client.h"

#include <cstdlib>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/printable.h"
#include "base/random.h"
#include "base/try.h"
#include "client/change.h"
#include "client/record_writer.h"
#include "net/environment.h"

namespace lictor {
namespace {

using client::NewRecord;

Error exists(const client::Queue& queue, const std::string& id) {
  return {ErrorCode::kConflict,
          fmt::format("task {} exists already in queue \"{}\" and was left as it is", printable(id),
                      queue.name)};
}

// Writes one record. Store::create() reads back after a lost reply; kTimeout means that the read
// did not show the result either.
Result<Submitted> create(client::Queue& queue, const NewRecord& task) {
  const auto created = queue.store.create({{queue.layout.task_key(task.id), task.record}});
  if (!created) {
    Error error = created.error();
    if (error.code == ErrorCode::kTimeout) {
      // Only the caller knows whether the task may run twice.
      error.message += fmt::format(
          "; look with \"lictor show {}\"; \"--id {}\" submits it again, unless it exists",
          shell_argument(task.id), shell_word(task.id));
    }
    return tl::unexpected(std::move(error));
  }
  if (!created->existing.empty()) return tl::unexpected(exists(queue, task.id));
  return Submitted{task.id, created->index};
}

// An option hides Consul's variable for the same thing. A token hides both of Consul's token
// variables.
Result<net::Options> consul_options(const ClientOptions& options) {
  net::Options consul;
  if (options.use_environment) {
    const auto get = [&](const char* name) -> const char* {
      const std::string_view variable{name};
      if (!options.addresses.empty() && variable == "CONSUL_HTTP_ADDR") return nullptr;
      const bool token = !options.token.empty() || !options.token_file.empty();
      if (token && variable.starts_with("CONSUL_HTTP_TOKEN")) return nullptr;
      return std::getenv(name);
    };
    auto read = net::options_from_environment(std::move(consul), get);
    if (!read) return read;
    consul = std::move(*read);
  }
  if (!options.addresses.empty()) consul.addresses = options.addresses;
  if (!options.token.empty()) consul.token = options.token;
  if (!options.token_file.empty()) consul.token_file = options.token_file;
  return consul;
}

// A prefix without its "/" would mix the keys of two queues: "a/tasks" also begins "a/tasks2".
Result<void> check_path(const char* name, const std::string& path, bool is_prefix) {
  if (path.ends_with('/') == is_prefix && client::key_fault(path).empty()) return {};
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: expected a path{}, got \"{}\"", name,
                          is_prefix ? " that ends in \"/\"" : "", printable(path)));
}

// Errors: kInvalid, naming the option.
Result<wire::Layout> layout_of(const ClientOptions& options) {
  if (auto checked = check_path("root", options.root, true); !checked) {
    return tl::unexpected(std::move(checked.error()));
  }
  if (options.queue.empty() || options.queue.find('/') != std::string::npos ||
      !client::key_fault(options.queue).empty()) {
    return fail(ErrorCode::kInvalid,
                "queue: expected a name, got \"" + printable(options.queue) + '"');
  }
  wire::Layout layout = wire::Layout::under(options.root, options.queue);
  for (const auto& [name, given, path] :
       {std::tuple{"tasks_prefix", &options.tasks_prefix, &layout.tasks_prefix},
        {"leader_key", &options.leader_key, &layout.leader_key},
        {"dead_prefix", &options.dead_prefix, &layout.dead_prefix},
        {"done_prefix", &options.done_prefix, &layout.done_prefix},
        {"control_key", &options.control_key, &layout.control_key}}) {
    if (given->empty()) continue;
    const bool is_prefix = std::string_view{name}.ends_with("prefix");
    if (auto checked = check_path(name, *given, is_prefix); !checked) {
      return tl::unexpected(std::move(checked.error()));
    }
    *path = *given;
  }
  if (!options.serialize_by.empty() && !client::is_json_pointer(options.serialize_by)) {
    return fail(ErrorCode::kInvalid,
                fmt::format("serialize_by: expected a JSON pointer, such as /taskPara/host, got "
                            "\"{}\"",
                            printable(options.serialize_by)));
  }
  layout.serialize_by = options.serialize_by;
  return layout;
}

}  // namespace

namespace client {

// One thread deletes all marks, in their order: they stay equally long. The thread ends with the
// last mark. It drops each mark under the mutex, so the thread of earlier marks has left its loop
// when a new first mark is added here, and the assignment joins it at once.
void CancelMarks::delete_later(std::string key) {
  const auto entry = store_.get(key);
  if (!entry || !*entry) return;
  Mark mark{boot_now() + stay, std::move(key), (*entry)->modify_index};
  if (stay == Duration::zero()) return remove(mark);
  const std::lock_guard lock{mutex_};
  marks_.push_back(std::move(mark));
  if (marks_.size() == 1) thread_ = std::jthread{[this] { delete_all(); }};
}

void CancelMarks::delete_all() {
  std::unique_lock lock{mutex_};
  while (!marks_.empty()) {
    const Mark mark = marks_.front();
    lock.unlock();
    std::this_thread::sleep_for(mark.due - boot_now());
    remove(mark);
    lock.lock();
    marks_.pop_front();
  }
}

// A mark that cannot be deleted stays until a later entry of the same task replaces it.
void CancelMarks::remove(const Mark& mark) {
  static_cast<void>(store_.apply({removal(mark.key, mark.index)}));
}

}  // namespace client

Client::Impl::Impl(net::Transport& transport, std::string name, wire::Layout layout)
    : store(transport),
      queue{store, std::move(name), std::move(layout)},
      cancel_marks(store),
      ids(random_seed()) {}

Client::Impl::Impl(std::unique_ptr<net::Transport> transport, std::string name, wire::Layout layout)
    : Impl(*transport, std::move(name), std::move(layout)) {
  owned = std::move(transport);
}

Result<NewRecord> Client::Impl::make_record(const NewTask& task) {
  const std::lock_guard lock{mutex};
  return client::make_record(task, wall_now(), ids);
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;
Client::Client(Client&&) noexcept = default;
Client& Client::operator=(Client&&) noexcept = default;

Result<Client> Client::open(const ClientOptions& options) {
  LICTOR_TRY(auto layout, layout_of(options));
  LICTOR_TRY(auto consul, consul_options(options));
  LICTOR_TRY(auto transport, net::Transport::open(std::move(consul)));
  return Client{std::make_unique<Impl>(std::move(transport), options.queue, std::move(layout))};
}

Result<Submitted> Client::submit(const NewTask& task) {
  LICTOR_TRY(const auto record, impl_->make_record(task));
  return create(impl_->queue, record);
}

Result<Submitted> Client::submit_record(std::string_view record) {
  std::unique_lock lock{impl_->mutex};
  LICTOR_TRY(const auto completed, client::complete_record(record, {}, wall_now(), impl_->ids));
  lock.unlock();
  return create(impl_->queue, completed);
}

// The writer numbers the records that it gets. `places` maps its numbers to those of `tasks`, which
// differ once a task was refused here.
std::vector<Result<Submitted>> Client::submit_many(std::span<const NewTask> tasks,
                                                   const Progress& progress, SubmitOrder order) {
  std::vector<Result<Submitted>> results(tasks.size());
  std::vector<std::size_t> places;  // of the records, in their order
  std::vector<bool> is_settled(tasks.size());
  const auto settle = [&](const client::RecordWriter::Settled& settled) {
    for (std::size_t i = 0; i < settled.count; ++i) {
      const std::size_t place = places[settled.first + i];
      is_settled[place] = true;
      if (settled.created) {
        results[place]->index = settled.created->index;
      } else {
        results[place] = tl::unexpected(settled.created.error());
      }
    }
    if (!settled.created) return;
    for (const std::size_t i : settled.created->existing) {
      const std::size_t place = places[settled.first + i];
      results[place] = tl::unexpected(exists(impl_->queue, results[place]->id));
    }
    if (progress) progress(places[settled.first + settled.count - 1] + 1, results.size());
  };
  client::RecordWriter writer{impl_->queue, settle, {}, order};
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    auto record = impl_->make_record(tasks[i]);
    if (!record) {
      results[i] = tl::unexpected(std::move(record.error()));
      continue;
    }
    results[i] = Submitted{record->id, 0};
    places.push_back(i);
    writer.add(*std::move(record));
  }
  writer.finish();
  for (const std::size_t place : places) {
    if (!is_settled[place]) results[place] = tl::unexpected(*writer.stopped());
  }
  return results;
}

}  // namespace lictor
