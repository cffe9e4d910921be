// What calls a person when a question waits: the title of the page and the badge of the app have the number of open
// questions; a question that has just come is told by a notification and a sound, once for all pages of the browser.

import { get } from './api.js';
import { store, stored } from './storage.js';
import { button, dialog, el, marked, quietly, short, titled, tried } from './ui.js';

const settingsSlot = 'roost-calls', toldSlot = 'roost-called';
const toldMost = 100; // ids of questions
const calm = 300; // milliseconds: several events ask once
// A page that is looked at tells first, and then keeps quiet: the person is there.
const patience = { looked: 0, seen: 400, hidden: 800 };

// takes fits what takes an open question away, or brings one back, without an answer.
export const takes = /^(history\.(rewound|undone)|task\.(deleted|changed)|run\.ended)$/;

const kinds = { approval: 'It wants approval.', followup: 'It asks a question.', completion: 'It says that it is done.', mistake_limit: 'It has made many mistakes.',
  request_failed: 'A request to the model failed.', resume: 'It asks whether to go on.', limit: 'It has reached a limit.' };

const settings = () => ({ shown: true, sound: true, text: false, ...stored(settingsSlot, {}) });
const allowed = () => (self.isSecureContext && self.Notification ? Notification.permission : 'none');
const looked = () => !document.hidden && document.hasFocus();

export class Calls {
  constructor(header) {
    this.fresh = new Set(); // questions that have just come, by their events
    this.known = null; // those of all answers so far
    header.append(button('Alerts', tried(() => this.settings()), { id: 'alerts' }));
    this.load().catch(quietly);
  }

  events(list) {
    for (const { type, data: d } of list) {
      if (type === 'question.opened') this.fresh.add(d.task_id + '.' + d.question);
      else if (type === 'question.closed') this.close(d.task_id + '.' + d.question);
      else if (!takes.test(type)) continue;
      this.timer ??= setTimeout(() => {
        this.timer = undefined;
        this.load().catch(quietly);
      }, calm);
    }
  }

  again() {
    this.load().catch(quietly);
  }

  // load counts the open questions, and tells each new one once: one that no answer had before, also when its event was
  // missed. Those of the first answer waited before the page came, unless an event announced them.
  async load() {
    const { items } = await get('/v1/questions');
    titled({ count: items.length });
    (items.length ? navigator.setAppBadge?.(items.length) : navigator.clearAppBadge?.())?.catch?.(() => {});
    const first = !this.known;
    this.known ??= new Set();
    for (const q of items) {
      if (this.known.has(q.id)) continue;
      this.known.add(q.id);
      if (this.fresh.delete(q.id) || !first) this.call(q);
    }
  }

  // call lets one page of the browser tell a question.
  async call(q) {
    if (!navigator.locks) return;
    const wait = patience[looked() ? 'looked' : document.hidden ? 'hidden' : 'seen'];
    if (wait) await new Promise((done) => { setTimeout(done, wait); });
    await navigator.locks.request('roost-call', async () => {
      const told = stored(toldSlot, []);
      if (told.includes(q.id)) return;
      store(toldSlot, [...told, q.id].slice(-toldMost));
      if (!looked()) await this.tell(q);
    });
  }

  async tell(q) {
    const { shown, sound, text } = settings();
    if (sound) chime();
    if (!shown || allowed() !== 'granted') return;
    const words = marked(q.command || q.text || '').slice(0, 300), title = short(q.title) || q.task_id;
    const options = { body: (kinds[q.kind] || 'It waits for you.') + (text && words ? '\n' + words : ''), tag: q.id, icon: '/static/icon-192.png',
      data: '/tasks/' + encodeURIComponent(q.task_id) + '#questions' };
    const worker = await navigator.serviceWorker?.getRegistration('/');
    if (worker?.active) { // a phone shows none without it
      await worker.showNotification(title, options);
      return;
    }
    const n = new Notification(title, options);
    n.onclick = () => { focus(); location.href = options.data; };
  }

  // close takes the notification of a question away: somebody answered.
  async close(id) {
    const worker = await navigator.serviceWorker?.getRegistration('/');
    for (const n of (await worker?.getNotifications({ tag: id })) || []) n.close();
  }

  async settings() {
    const now = settings();
    const check = (name, label) => el('label', { class: 'check' }, el('input', { type: 'checkbox', name, checked: now[name] }), ' ' + label);
    const place = el('div', {});
    const permission = () => place.replaceChildren({
      granted: () => check('shown', 'Show a notification'),
      default: () => button('Allow notifications', tried(async () => { await Notification.requestPermission(); permission(); }), { 'data-does': 'allow', class: 'primary' }),
      denied: () => el('p', {}, 'The browser refuses notifications of this page. Its settings for this site can allow them.'),
      none: () => el('p', {}, 'This browser shows no notifications here: it wants https, and a certificate that it trusts.'),
    }[allowed()]());
    permission();
    const d = await dialog('When a task waits for you', [place, check('sound', 'Play a short sound'), check('text', 'Notifications show the words of the question')], { does: 'Keep' });
    if (!d) return;
    const on = (name) => d.data.has(name);
    store(settingsSlot, { shown: allowed() === 'granted' ? on('shown') : true, sound: on('sound'), text: on('text') });
  }
}

// chime plays two short tones. A browser plays nothing before somebody has used the page.
function chime() {
  if (!self.AudioContext || !navigator.userActivation?.hasBeenActive) return;
  const audio = new AudioContext(), loud = audio.createGain();
  loud.connect(audio.destination);
  loud.gain.setValueAtTime(0.0001, audio.currentTime);
  loud.gain.exponentialRampToValueAtTime(0.08, audio.currentTime + 0.02);
  loud.gain.exponentialRampToValueAtTime(0.0001, audio.currentTime + 0.4);
  for (const [pitch, at] of [[659, 0], [880, 0.14]]) {
    const tone = audio.createOscillator();
    tone.frequency.value = pitch;
    tone.connect(loud);
    tone.start(audio.currentTime + at);
    tone.stop(audio.currentTime + at + 0.25);
    if (at) tone.onended = () => audio.close();
  }
}
