// Mutual TLS: a Consul that asks for client certificates (verify_incoming), and certificates that a
// CA of the test's own has made.

#include <cstdlib>
#include <map>

#include "lictor/client.h"
#include "world.h"

namespace lictor::live {
namespace {

using Variables = std::map<std::string, std::string>;

// A certification authority in a folder.
class Authority {
 public:
  Authority(const TemporaryFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)) {
    openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", file(".key"), "-out", certificate(), "-subj", "/CN=" + name_, "-days",
             "2"});
    write_text(file(".ext"), "subjectAltName=IP:127.0.0.1,DNS:server.dc1.consul\n");
  }

  [[nodiscard]] std::string certificate() const { return file(".pem"); }

  struct Pair {
    std::string certificate, key;
  };
  // A certificate for a server on the loopback or for a client; with 0 days it has expired. OpenSSL
  // 3.5 makes none that ends before it begins.
  [[nodiscard]] Pair issue(const std::string& subject, int days = 2) const {
    const std::string stem = folder_.file(name_ + "-" + subject);
    openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
             stem + ".key", "-out", stem + ".csr", "-subj", "/CN=" + subject});
    openssl({"x509", "-req", "-in", stem + ".csr", "-CA", certificate(), "-CAkey", file(".key"),
             "-CAcreateserial", "-days", std::to_string(days), "-extfile", file(".ext"), "-out",
             stem + ".pem"});
    const std::vector<std::string> valid{"openssl", "x509", "-checkend",  "0",
                                         "-noout",  "-in",  stem + ".pem"};
    if (days == 0) REQUIRE(eventually([&] { return run(valid).exit_code != 0; }));
    return {stem + ".pem", stem + ".key"};
  }

 private:
  static void openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    const Output output = run(arguments);
    REQUIRE_MESSAGE(output.exit_code == 0, output.out);
  }
  [[nodiscard]] std::string file(const std::string& ending) const {
    return folder_.file(name_ + ending);
  }

  const TemporaryFolder& folder_;
  const std::string name_;
};

// A Consul with HTTPS beside the plain port that the test itself uses.
struct SecureConsul {
  int port = free_port();
  ConsulAgent agent;

  SecureConsul(const Authority& authority, const Authority::Pair& server)
      : agent{{{"ports", {{"https", port}}},
               {"verify_incoming", true},
               {"verify_outgoing", true},
               {"ca_file", authority.certificate()},
               {"cert_file", server.certificate},
               {"key_file", server.key}}} {}

  [[nodiscard]] std::string url() const { return "https://127.0.0.1:" + std::to_string(port); }
};

Variables variables_of(const std::string& ca, const Authority::Pair& client) {
  Variables variables{{"CONSUL_CACERT", ca}};
  if (!client.certificate.empty()) {
    variables["CONSUL_CLIENT_CERT"] = client.certificate;
    variables["CONSUL_CLIENT_KEY"] = client.key;
  }
  return variables;
}

// Neither a command nor a daemon gets through, and both say this.
void check_refused(const World& world, const std::string& url, const std::string& ca,
                   const Authority::Pair& client, const std::string& text) {
  const Variables variables = variables_of(ca, client);
  write_text(world.folder.file("client.json"), "{}");
  ends(run({LICTOR_COMMAND, "--config", world.folder.file("client.json"), "--consul", url, "--root",
            world.root, "list"},
           variables),
       4, {text});
  DaemonSettings settings = world.settings("refused");
  settings.consul = {url};
  settings.environment = variables;
  LictorDaemon daemon{settings};
  REQUIRE(eventually([&] { return daemon.logged("a request to Consul failed"); }));
  CHECK(daemon.runs());  // the certificate may yet be mended
  CHECK_MESSAGE(daemon.logged(text), daemon.log());
}

constexpr const char* kRefused = "the server refuses our certificate";

TEST_CASE("daemon, commands and client library work with a client certificate") {
  const TemporaryFolder folder;
  const Authority authority{folder, "authority"};
  SecureConsul consul{authority, authority.issue("server")};
  const Authority::Pair own = authority.issue("lictor");
  World world{consul.agent};

  DaemonSettings settings = world.settings("a");
  settings.consul = {consul.url()};
  settings.consul_extra = {{"ca_file", authority.certificate()},
                           {"client_cert", own.certificate},
                           {"client_key", own.key}};
  LictorDaemon daemon{settings};
  ends(lictor(daemon, {"submit", "Record", "--id", "1", "--wait"}), 0);
  ends(lictor(daemon, {"check"}), 0);

  const Variables variables = variables_of(authority.certificate(), own);
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  ClientOptions options;
  options.addresses = {consul.url()};
  options.root = world.root;
  auto client = Client::open(options);
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  REQUIRE(client.has_value());
  NewTask task;
  task.type = "Record";
  task.id = "2";
  const auto written = client->submit(task);
  REQUIRE_MESSAGE(written.has_value(), written.error().message);
  const auto ending = client->wait("2", {.index = written->index});
  REQUIRE_MESSAGE(ending.has_value(), ending.error().message);
  CHECK(world.journal.order() == std::vector<std::string>{"1", "2"});
}

TEST_CASE("daemon and commands say what is wrong with a certificate") {
  const TemporaryFolder folder;
  const Authority authority{folder, "authority"};
  const Authority stranger{folder, "stranger"};
  SecureConsul consul{authority, authority.issue("server")};
  const Authority::Pair own = authority.issue("lictor");
  World world{consul.agent};
  const auto refused = [&](const std::string& ca, const Authority::Pair& client, const char* text) {
    check_refused(world, consul.url(), ca, client, text);
  };
  SUBCASE("no client certificate") { refused(authority.certificate(), {}, kRefused); }
  SUBCASE("a client certificate of another CA") {
    refused(authority.certificate(), stranger.issue("lictor"), kRefused);
  }
  SUBCASE("a client certificate that has expired") {
    refused(authority.certificate(), authority.issue("old", 0), kRefused);
  }
  SUBCASE("a server with an unknown CA") {
    refused(stranger.certificate(), own, "unable to get local issuer certificate; check ca_file");
  }
  SUBCASE("a server whose certificate has expired") {
    SecureConsul old{authority, authority.issue("old-server", 0)};
    check_refused(world, old.url(), authority.certificate(), own, "certificate has expired; check");
  }
  CHECK(world.kv.list(world.root).empty());  // nothing has passed
}

}  // namespace
}  // namespace lictor::live
