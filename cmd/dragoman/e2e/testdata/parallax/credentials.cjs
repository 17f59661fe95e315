// An agent of the published SDK of Parallax for each entry of the JSON list on stdin, which joins the
// gateway at HUB with the credentials of the entry: {id, headers, certificate, key}. It prints
// whether each was let in, and stays until it is killed.
const { readFileSync } = require('node:fs');
const { ParallaxAgent } = require('@parallaxai/sdk-typescript');
const grpc = require('@grpc/grpc-js');

class Quiet extends ParallaxAgent {
  async analyze() { return this.createResult('', 1); }
}

async function join({ id, headers, certificate, key }) {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name.toLowerCase(), value);
  const pem = (text) => (text ? Buffer.from(text) : null);
  const agent = new Quiet(id, id, [], {});
  const lost = new Promise((_, reject) => { agent.handleGatewayDisconnect = reject; }); // instead of trying again
  await Promise.race([lost, agent.connectViaGateway(process.env.HUB, {
    credentials: grpc.credentials.combineChannelCredentials(
      grpc.credentials.createSsl(readFileSync(process.env.CA), pem(key), pem(certificate)),
      grpc.credentials.createFromMetadataGenerator((_, done) => done(null, metadata)),
    ),
  })]);
}

(async () => {
  console.log = () => {}; // the SDK prints much
  console.error = () => {};
  const said = [];
  for (const entry of JSON.parse(readFileSync(0, 'utf8'))) {
    said.push(await join(entry).then(() => '', (error) => String(error.message)));
  }
  process.stdout.write(JSON.stringify(said) + '\n');
})();
