// A receiver over TLS that answers each request with 204: receiver.mjs KEY CERTIFICATE
import { readFileSync } from "node:fs";
import { createServer } from "node:https";

const [key, cert] = process.argv.slice(2, 4).map((path) => readFileSync(path));
const server = createServer({ key, cert }, (request, response) => {
  request.resume().on("end", () => response.writeHead(204).end());
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
