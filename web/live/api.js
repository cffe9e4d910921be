// Requests to the HTTP API, with the cookie of the log-in.

export class Problem extends Error {
  constructor(document, status) {
    super([document.title, document.detail].filter(Boolean).join(': ') || 'The server refused: ' + status);
    Object.assign(this, { status, code: document.code || '', document });
  }
}

// A read that has no answer by then went over a dead connection, and is asked again: of the six that a browser keeps, all
// may be dead. What changes something may take as long as it needs.
const patience = 60_000, connections = 6;

async function send(path, init, signal) {
  if (init.method !== 'GET') return fetch(path, { ...init, signal });
  for (let left = connections; ; left--) {
    try {
      return await fetch(path, { ...init, signal: AbortSignal.any([AbortSignal.timeout(patience), signal].filter(Boolean)) });
    } catch (e) {
      if (e.name !== 'TimeoutError' || !left) throw e;
    }
  }
}

// The last act whose answer was lost, by what it asked: asked again within a minute, it takes effect once.
let lost = null;
const again = 60_000;

export async function request(method, path, { body, accept, key, signal, keepalive } = {}) {
  const headers = { Accept: accept || 'application/json' }, text = body === undefined ? undefined : JSON.stringify(body), asks = [method, path, text].join();
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  if (method !== 'GET') key = headers['Idempotency-Key'] = key || (lost?.asks === asks && Date.now() - lost.at < again ? lost.key : crypto.randomUUID());
  let answer;
  try {
    answer = await send(path, { method, headers, keepalive, cache: 'no-store', body: text }, signal);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    if (!['GET', 'PUT'].includes(method)) lost = { asks, key, at: Date.now() };
    throw new Problem({ title: 'The server does not answer', detail: 'try again when it is there', code: 'unreachable' }, 0);
  }
  if (answer.ok && lost?.key === key) lost = null;
  if (answer.ok) return answer;
  let document = {};
  try {
    document = await answer.json();
  } catch { /* not a problem document */ }
  if (answer.status === 401) document = { title: 'The log-in has ended', detail: 'open the link that roost open or roost serve prints', code: 'unauthenticated' };
  throw new Problem(document, answer.status);
}

export const get = async (path, o) => (await request('GET', path, o)).json();
export const getHTML = async (path, o) => (await request('GET', path, { accept: 'text/html', ...o })).text();

// act changes something. A key makes the same request, sent again, take effect once.
export async function act(method, path, body, key, more = {}) {
  const answer = await request(method, path, { body, key, ...more });
  return answer.status === 204 ? null : answer.json();
}

// taskPath is an address of a task. A page names a task of Roost's own root without its source; with it the server looks
// at the task's place alone, and through no other storage.
export const taskPath = (id, rest = '') => '/v1/tasks/' + encodeURIComponent(id.includes(':') ? id : 'roost:' + id) + rest;
