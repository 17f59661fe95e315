// An agent made of the published package @parallaxai/sdk-typescript, as its README
// shows: it listens, registers where PARALLAX_REGISTRY says, and answers in capitals.
const { ParallaxAgent, serveAgent } = require('@parallaxai/sdk-typescript');

class Shout extends ParallaxAgent {
  constructor(id) {
    super(id, 'Shouting Agent', ['shouting'], { region: 'eu' });
  }

  async analyze(task, data) {
    if (task === 'fail') throw new Error('no idea');
    return { value: { answer: task.toUpperCase(), of: data.content }, confidence: 0.85, reasoning: 'it was asked nicely' };
  }
}

serveAgent(new Shout(process.argv[2])).then(() => console.log('IN'));
