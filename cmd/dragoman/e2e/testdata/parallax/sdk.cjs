// An agent made of the published package @parallaxai/sdk-typescript, as its README
// shows: it connects through the gateway and answers in capitals. Behind each line that it prints is
// after how many milliseconds.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (text, ...rest) => write(String(text).replace(/\n/g, ` @${Math.floor(performance.now())}\n`), ...rest);
const { ParallaxAgent } = require('@parallaxai/sdk-typescript');

class Shout extends ParallaxAgent {
  constructor(id) {
    super(id, 'Shouting Agent', ['shouting'], { region: 'eu', floor: 7 });
  }

  async analyze(task, data) {
    if (task === 'fail') throw new Error('no idea');
    if (task === 'wait') await new Promise(() => {});
    return { value: { answer: task.toUpperCase(), of: data.content }, confidence: 0.85, reasoning: 'it was asked nicely' };
  }
}

new Shout(process.argv[2]).connectViaGateway(process.env.HUB, { heartbeatIntervalMs: 1000 }).then(
  () => console.log('IN'),
  (error) => console.log('OUT: ' + error.message),
);
