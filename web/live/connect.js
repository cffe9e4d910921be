// A page's end of the event stream. All pages of a browser share one: in a shared worker, else in the page that holds a
// lock, which passes the events on through a BroadcastChannel; where a browser has neither, each page has its own.

import { orderly, reached } from './cursor.js';
import { scriptAddress } from './fragment.js';
import { Hub } from './hub.js';

// connect follows the events behind a cursor. on.events(list) takes each durable event once, in order, and streamed text
// between them; on.state({live, why}) says whether the page is live; on.lost() asks the page to load anew what it shows.
export function connect({ cursor, task, on }) {
  let seen = cursor, door = null;

  const take = ({ state, events, at }) => {
    if (state) on.state(state);
    if (!events) return;
    const fresh = [];
    for (const e of events) {
      if (e.type === 'stream.snapshot') {
        seen = e.id;
        on.lost();
        continue;
      }
      if (e.id && seen && reached(e.id, seen)) continue;
      if (e.id) seen = e.id;
      if (e.type) fresh.push(e);
    }
    if (at && (!seen || !orderly(at, seen) || !reached(at, seen))) seen = at;
    if (fresh.length) on.events(fresh);
  };
  // Ids of tasks have no colon; before one stands the source.
  const join = () => door.post({ join: { cursor: seen, task: task.split(':').at(-1) } });

  const open = () => {
    door = throughWorker(take) || throughLock(take, join) || alone(new Hub(), take);
    join();
  };
  open();

  addEventListener('pagehide', () => door.post({ leave: true }));
  addEventListener('pageshow', (e) => { if (e.persisted) join(); });
  addEventListener('online', () => door.post({ wake: true }));
  document.addEventListener('visibilitychange', () => { if (!document.hidden) door.post({ wake: true }); });
  return { wake: () => door.post({ wake: true }) };
}

function throughWorker(take) {
  if (!self.SharedWorker) return null;
  let port;
  try {
    port = new SharedWorker(scriptAddress('/static/worker.js'), 'roost').port;
  } catch {
    return null;
  }
  port.onmessage = ({ data }) => take(data);
  if (navigator.locks) {
    const lock = 'roost-page-' + crypto.randomUUID();
    navigator.locks.request(lock, () => {
      port.postMessage({ lock }); // not before it is held: the worker would get it, and take the page for gone
      return new Promise(() => {});
    });
  }
  return { post: (m) => port.postMessage(m) };
}

function throughLock(take, join) {
  if (!navigator.locks || !self.BroadcastChannel) return null;
  const channel = new BroadcastChannel('roost'), me = crypto.randomUUID();
  let hub = null;
  channel.onmessage = ({ data }) => {
    if (data.to === me) take(data.message);
    else if (data.leads && !hub) join();
    else if (data.from && hub) hub.handle(data.from, data.message, (message) => channel.postMessage({ to: data.from, message }));
  };
  // A page that is left gives the lock back at once: a browser may keep it for the way back, and would keep the lock.
  let give;
  const lead = () => navigator.locks.request('roost-stream', () => new Promise((done) => {
    give = done;
    hub = new Hub();
    join();
    channel.postMessage({ leads: true });
  }));
  lead();
  addEventListener('pageshow', (e) => { if (e.persisted) lead(); });
  return {
    post: (m) => {
      if (!hub) return channel.postMessage({ from: me, message: m });
      if (!m.leave) return hub.handle(me, m, take);
      hub.close();
      hub = null;
      give();
    },
  };
}

const alone = (hub, take) => ({ post: (m) => hub.handle(1, m, take) });
