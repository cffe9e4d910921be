// A Stream reads the events of all tasks from the server, and resumes behind the last one after any break. It is fetched,
// not an EventSource: that hides the heartbeats, by which a dead connection is noticed, and the reason of a refusal.

const silence = 25_000; // the server sends something every 10 seconds
const waits = [250, 500, 1000, 2000, 4000, 8000];

export class Stream {
  // give(batch) takes [{id, type, data}], data as text; tell(state) takes {live, why}.
  constructor(give, tell) {
    this.give = give;
    this.tell = tell;
    this.cursor = '';
    this.running = false;
    this.tries = 0;
  }

  // start begins behind a cursor; a stream that reads already is begun again.
  start(cursor) {
    this.cursor = cursor;
    if (this.running) return this.again();
    this.running = true;
    this.run();
  }

  stop() {
    this.running = false;
    this.again();
  }

  // again ends the connection, or the wait for the next one.
  again() {
    this.tries = 0;
    this.abort?.abort();
    this.nap?.();
  }

  // wake is called when a page is looked at again, or the network is back.
  wake() {
    if (this.nap || Date.now() - this.heard > 12_000) this.again();
  }

  async run() {
    while (this.running) {
      let why = 'unreachable';
      try {
        why = await this.read();
      } catch { /* the connection broke */ }
      if (!this.running) return;
      this.tell({ live: false, why });
      // Without a log-in nothing is asked until somebody looks at the page: trying again would not help.
      const wait = why === 'login' ? 0 : waits[Math.min(this.tries++, waits.length - 1)] * (0.75 + Math.random() / 2);
      await new Promise((done) => {
        const timer = wait ? setTimeout(done, wait) : 0;
        this.nap = () => { clearTimeout(timer); done(); };
      });
      this.nap = null;
    }
  }

  // read follows one connection to its end, and gives the reason of it.
  async read() {
    const abort = this.abort = new AbortController();
    this.hear();
    try {
      const headers = { Accept: 'text/event-stream' };
      if (this.cursor) headers['Last-Event-ID'] = this.cursor;
      const answer = await fetch('/v1/events', { headers, cache: 'no-store', signal: abort.signal });
      if (answer.status === 401) return 'login';
      if (answer.status === 429) return 'crowded';
      if (answer.status === 400) {
        this.cursor = ''; // it is no cursor of this server; the pages load anew
        this.give([{ id: '', type: 'stream.snapshot', data: '{}' }]);
        return 'restarted';
      }
      if (!answer.ok) return 'refused';
      this.tell({ live: true });
      return await this.frames(answer.body.getReader());
    } finally {
      clearTimeout(this.watch);
      abort.abort();
    }
  }

  // hear notes that the server sends, and puts off the moment at which the connection counts as dead.
  hear() {
    this.heard = Date.now();
    clearTimeout(this.watch);
    this.watch = setTimeout(() => this.abort.abort(), silence);
  }

  async frames(reader) {
    const decoder = new TextDecoder();
    let rest = '', why = 'ended';
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return why;
      this.hear();
      this.tries = 0;
      const text = decoder.decode(value, { stream: true });
      // A long frame comes in many pieces: it is joined once its end is there.
      if (!text.includes('\n\n') && !(text.startsWith('\n') && rest.endsWith('\n'))) {
        rest += text;
        continue;
      }
      const frames = (rest + text).split('\n\n');
      rest = frames.pop();
      const batch = [];
      for (const frame of frames) {
        const event = parse(frame);
        if (event.id) this.cursor = event.id;
        if (event.data === null) {
          if (event.id) batch.push({ id: event.id, type: '', data: '' }); // a place, and nothing that happened there
          continue;
        }
        if (event.type === 'stream.end') why = 'stopping';
        else batch.push(event);
      }
      if (batch.length) this.give(batch);
    }
  }
}

function parse(frame) {
  const event = { id: '', type: '', data: null };
  for (const line of frame.split('\n')) {
    const colon = line.indexOf(': ');
    if (colon < 1) continue;
    const name = line.slice(0, colon);
    if (name === 'id') event.id = line.slice(colon + 2);
    else if (name === 'event') event.type = line.slice(colon + 2);
    else if (name === 'data') event.data = line.slice(colon + 2);
  }
  return event;
}
