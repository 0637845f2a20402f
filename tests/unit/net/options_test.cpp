#include <map>

#include "net/endpoint.h"
#include "net/environment.h"
#include "unit/contains.h"
#include "unit/refusal.h"

namespace lictor::net {

using Kind = Endpoint::Kind;

TEST_CASE("an address is read in each of its forms") {
  struct Row {
    std::string address;
    Kind kind;
    std::string origin;
  };
  for (const Row& row : {
           Row{"http://127.0.0.1:8500", Kind::kHttp, "http://127.0.0.1:8500"},
           Row{"127.0.0.1:8500", Kind::kHttp, "http://127.0.0.1:8500"},
           Row{"localhost:8500", Kind::kHttp, "http://localhost:8500"},
           Row{":8500", Kind::kHttp, "http://localhost:8500"},
           Row{"http://consul.example:8500/", Kind::kHttp, "http://consul.example:8500"},
           Row{"http://consul.example", Kind::kHttp, "http://consul.example:80"},
           Row{"https://consul.example:8501", Kind::kHttps, "https://consul.example:8501"},
           Row{"https://consul.example", Kind::kHttps, "https://consul.example:443"},
           Row{"[::1]:8500", Kind::kHttp, "http://[::1]:8500"},
           Row{"http://[fe80::1%eth0]:8500", Kind::kHttp, "http://[fe80::1%eth0]:8500"},
           Row{"unix:///run/consul.sock", Kind::kUnix, "http://localhost"},
       }) {
    CAPTURE(row.address);
    const auto endpoint = parse_endpoint(row.address, "").value();
    CHECK(endpoint.kind == row.kind);
    CHECK(endpoint.origin == row.origin);
    CHECK(endpoint.address == row.address);
    CHECK(endpoint.connect_to.empty());
    CHECK(endpoint.unix_path == (row.kind == Kind::kUnix ? "/run/consul.sock" : ""));
  }
}

TEST_CASE("with a TLS server name, the origin bears that name and the connection the address") {
  const auto endpoint = parse_endpoint("https://[::1]:8501", "server.dc1.consul").value();
  CHECK(endpoint.origin == "https://server.dc1.consul:8501");
  CHECK(endpoint.connect_to == "::[::1]:8501");
  // The variable is of no use to the other kinds, and may be set for other programs.
  CHECK(parse_endpoint("http://10.0.0.1:8500", "server.dc1.consul")->connect_to.empty());
  CHECK_FALSE(parse_endpoint("https://10.0.0.1:8501", "a b"));
}

TEST_CASE("an address that cannot be used is refused by name, with what to write instead") {
  for (const char* address : {"",
                              "consul",
                              "127.0.0.1:",
                              "127.0.0.1:0",
                              "127.0.0.1:65536",
                              "127.0.0.1:85x",
                              "::1:8500",
                              "[::1:8500",
                              "[::1]8500",
                              "ftp://127.0.0.1:8500",
                              "http://",
                              "http://a b:8500",
                              "http://127.0.0.1:8500/v1",
                              "http://127.0.0.1:8500?x",
                              "unix://",
                              "unix://relative",
                              "HTTP://127.0.0.1:8500",
                              "htp:/x:1",
                              "http:/x:1",
                              "unix:/x:1"}) {
    CAPTURE(address);
    const Error error = refusal_of(parse_endpoint(address, ""));
    CHECK(error.code == ErrorCode::kInvalid);
    CHECK(error.message.find("Consul address \"" + std::string{address}) == 0);
    CHECK(contains(error.message, "expected"));
  }
  CHECK_FALSE(parse_endpoint("unix:///" + std::string(120, 'x'), ""));
}

TEST_CASE("a password in an address is refused without being shown") {
  for (const char* address : {"http://me:hush@127.0.0.1:8500", "me:hush@127.0.0.1:8500",
                              "ftp://me:hush@127.0.0.1:8500", "http://me:hush@a/b@c:1"}) {
    const Error error = refusal_of(parse_endpoint(address, ""));
    CHECK_FALSE(contains(error.message, "hush"));
    CHECK(contains(error.message, "basic_auth"));
  }
}

namespace {

using Environment = std::map<std::string, std::string>;

Result<Options> apply(const Environment& environment, Options base = {}) {
  return options_from_environment(std::move(base), [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  });
}

}  // namespace

TEST_CASE("CONSUL_HTTP_ADDR and CONSUL_HTTP_SSL give the address that the consul command uses") {
  struct Row {
    Environment environment;
    std::vector<std::string> configured;
    std::vector<std::string> expected;
  };
  const std::string addr = "CONSUL_HTTP_ADDR", ssl = "CONSUL_HTTP_SSL";
  const std::vector<std::string> standard = Options{}.addresses;
  for (const Row& row : {
           Row{{}, standard, {"http://127.0.0.1:8500"}},
           Row{{}, {"a:1", "https://b:2"}, {"http://a:1", "https://b:2"}},
           Row{{{addr, "c:3"}}, {"a:1", "b:2"}, {"http://c:3"}},
           Row{{{addr, ""}}, {"http://a:1"}, {"http://a:1"}},
           Row{{{addr, "https://c:3"}}, standard, {"https://c:3"}},
           Row{{{addr, "unix:///run/c"}, {ssl, "1"}}, standard, {"unix:///run/c"}},
           Row{{{addr, "c:3"}, {ssl, "true"}}, standard, {"https://c:3"}},
           Row{{{addr, "c:3"}, {ssl, "false"}}, standard, {"http://c:3"}},
           Row{{{addr, "http://c:3"}, {ssl, "1"}}, standard, {"https://c:3"}},
           Row{{{ssl, "T"}}, standard, {"https://127.0.0.1:8500"}},
           Row{{{ssl, "1"}}, {"a:1", "http://b:2"}, {"https://a:1", "https://b:2"}},
       }) {
    Options base{.addresses = row.configured};
    CHECK(apply(row.environment, base).value().addresses == row.expected);
  }
}

TEST_CASE("each variable of Consul's sets its option, and an empty one leaves it") {
  struct Row {
    const char* name;
    std::string Options::*setting;
  };
  for (const Row& row :
       {Row{"CONSUL_HTTP_TOKEN", &Options::token},
        Row{"CONSUL_HTTP_TOKEN_FILE", &Options::token_file},
        Row{"CONSUL_HTTP_AUTH", &Options::basic_auth}, Row{"CONSUL_CACERT", &Options::ca_file},
        Row{"CONSUL_CAPATH", &Options::ca_path}, Row{"CONSUL_CLIENT_CERT", &Options::client_cert},
        Row{"CONSUL_CLIENT_KEY", &Options::client_key},
        Row{"CONSUL_TLS_SERVER_NAME", &Options::tls_server_name},
        Row{"CONSUL_NAMESPACE", &Options::consul_namespace},
        Row{"CONSUL_PARTITION", &Options::consul_partition}}) {
    CAPTURE(row.name);
    Options base;
    base.*row.setting = "configured";
    CHECK(apply({}, base).value().*row.setting == "configured");
    CHECK(apply({{row.name, ""}}, base).value().*row.setting == "configured");
    CHECK(apply({{row.name, "set"}}, base).value().*row.setting == "set");
  }
}

TEST_CASE("the words for true and false are those of the consul command; others are an error") {
  for (const char* word : {"1", "t", "T", "true", "TRUE", "True"}) {
    CHECK(apply({{"CONSUL_HTTP_SSL_VERIFY", word}}).value().tls_verify);
  }
  for (const char* word : {"0", "f", "F", "false", "FALSE", "False"}) {
    CHECK_FALSE(apply({{"CONSUL_HTTP_SSL_VERIFY", word}}).value().tls_verify);
  }
  CHECK(apply({{"CONSUL_HTTP_SSL_VERIFY", ""}}).value().tls_verify);
  for (const char* name : {"CONSUL_HTTP_SSL", "CONSUL_HTTP_SSL_VERIFY"}) {
    for (const char* word : {"yes", "on", "2", "tRUE", " 1"}) {
      const Error error = refusal_of(apply({{name, word}}));
      CHECK(error.code == ErrorCode::kInvalid);
      CHECK(error.message == "environment variable " + std::string{name} +
                                 ": expected true or false, got \"" + word +
                                 "\"; correct or unset it");
    }
  }
}

TEST_CASE("a token of the environment wins over the configuration's file, its file over both") {
  Options base;
  base.token_file = "/configured";
  CHECK(apply({{"CONSUL_HTTP_TOKEN", "t"}}, base)->token_file.empty());
  CHECK(apply({{"CONSUL_HTTP_TOKEN", "t"}, {"CONSUL_HTTP_TOKEN_FILE", "/set"}}, base)->token_file ==
        "/set");
}

}  // namespace lictor::net
