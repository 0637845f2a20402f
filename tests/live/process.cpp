#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>
#include <sstream>
#include <stdexcept>

namespace lictor::live {
namespace {

std::vector<std::string> environment_with(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text{*variable};
    const std::string name = text.substr(0, text.find('='));
    // The shell's variables about Consul or lictor do not concern these tests.
    if (name.starts_with("CONSUL_") || name.starts_with("LICTOR_") || extra.contains(name))
      continue;
    all.push_back(text);
  }
  for (const auto& [name, value] : extra) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, const std::string& log_file,
                 const std::map<std::string, std::string>& environment) {
  std::vector<std::string> arguments = argv;
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argument_list = pointers(arguments);
  const std::vector<char*> variable_list = pointers(variables);
  const int log = open(log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log < 0 || null < 0) throw std::runtime_error{"cannot open " + log_file};
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    dup2(null, 0);
    dup2(log, 1);
    dup2(log, 2);
    execvpe(argument_list[0], argument_list.data(), variable_list.data());
    _exit(127);
  }
  close(log);
  close(null);
  if (pid_ < 0) throw std::runtime_error{"cannot fork"};
}

Process::~Process() {
  if (!ended_) {
    signal(SIGKILL);
    static_cast<void>(wait());
  }
}

void Process::signal(int number) const {
  if (!ended_) kill(pid_, number);
}

std::optional<int> Process::wait(std::chrono::milliseconds limit) {
  static_cast<void>(eventually(
      [&] {
        if (ended_) return true;
        int status = 0;
        if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
        ended_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        return true;
      },
      limit));
  return ended_;
}

Output run(const std::vector<std::string>& argv,
           const std::map<std::string, std::string>& environment) {
  const TemporaryFolder folder;
  Process process{argv, folder.file("out"), environment};
  Output output;
  output.exit_code = process.wait().value_or(-1);
  output.out = read_text(folder.file("out"));
  return output;
}

bool is_alive(pid_t pid) {
  const std::string stat = read_text("/proc/" + std::to_string(pid) + "/stat");
  const auto end_of_name = stat.rfind(')');
  return end_of_name != std::string::npos && end_of_name + 2 < stat.size() &&
         stat[end_of_name + 2] != 'Z' && stat[end_of_name + 2] != 'X';
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string id = std::to_string(pid);
  std::istringstream children{read_text("/proc/" + id + "/task/" + id + "/children")};
  return {std::istream_iterator<pid_t>{children}, {}};
}

std::string status_field(pid_t pid, const std::string& name) {
  std::istringstream status{read_text("/proc/" + std::to_string(pid) + "/status")};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return {};
}

}  // namespace lictor::live
