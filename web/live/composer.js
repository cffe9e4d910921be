// Where a person writes to the task: words go to the run, wait in the queue, or start one. A draft is kept until the
// server has the words.

import { act, get, taskPath } from './api.js';
import { askable, decisions } from './resume.js';
import { button, el, failed, marked, note, tried } from './ui.js';

const working = ['queued', 'running', 'waiting', 'delegated'];

export class Composer {
  constructor(task, place) {
    this.task = task;
    this.slot = 'roost-draft-' + task;
    this.status = '';
    this.words = el('textarea', { id: 'words', name: 'words', rows: 1, placeholder: 'Message', 'aria-label': 'Message to the task', enterkeyhint: 'send' });
    this.state = el('p', { id: 'activity', role: 'status' });
    this.spent = el('p', { id: 'spent' });
    this.queue = el('ol', { id: 'queue', 'aria-label': 'Messages that wait', hidden: true });
    this.send = el('button', { id: 'send', class: 'primary' }, 'Send');
    this.now = button('Interrupt', () => this.submit('interrupt'), { id: 'interrupt', hidden: true, title: 'Send it now, and let the run begin anew with it' });
    this.stop = button('Stop', tried(() => this.cancel()), { id: 'cancel', class: 'danger', hidden: true });
    this.retry = button('Continue', tried(() => this.again()), { id: 'retry', hidden: true });
    const form = el('form', { id: 'compose', onsubmit: (e) => { e.preventDefault(); this.submit('auto'); } },
      this.queue, el('div', { class: 'line' }, this.words, el('div', { class: 'acts' }, this.send, this.now, this.stop, this.retry)),
      el('div', { class: 'line' }, this.state, this.spent));
    place.replaceChildren(form);
    place.hidden = false;
    this.words.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
        e.preventDefault();
        this.submit('auto');
      } else if (e.key === 'Escape') {
        this.words.blur();
      }
    });
    this.words.addEventListener('input', () => this.keep());
    const draft = this.draft();
    this.words.value = draft.text || '';
    this.key = draft.key;
    this.fit();
    addEventListener('storage', (e) => { // the same draft in another tab
      if (e.key !== this.slot || document.activeElement === this.words) return;
      this.words.value = this.draft().text || '';
      this.key = this.draft().key;
      this.fit();
    });
  }

  draft() {
    try {
      return JSON.parse(localStorage.getItem(this.slot)) || {};
    } catch {
      return {};
    }
  }

  // keep stores the draft with the key of its request: words that are sent again after a broken connection are taken once.
  keep() {
    const text = this.words.value;
    this.key = text ? crypto.randomUUID() : '';
    this.store(text);
    this.fit();
  }

  store(text) {
    try {
      if (text) localStorage.setItem(this.slot, JSON.stringify({ text, key: this.key }));
      else localStorage.removeItem(this.slot);
    } catch { /* the browser stores nothing; the words stay in the field */ }
  }

  fit() {
    this.words.rows = Math.min(10, this.words.value.split('\n').length);
  }

  async submit(delivery) {
    const text = this.words.value.trim();
    if (!text || this.sending) return;
    this.sending = this.send.disabled = true;
    try {
      if (working.includes(this.status)) {
        try {
          this.accepted(await act('POST', taskPath(this.task, '/messages'), { text, delivery }, this.key));
          return;
        } catch (problem) {
          if (!askable.includes(problem.code)) throw problem;
        }
      }
      await this.run({ message: { text } }, { text, delivery });
    } catch (problem) {
      failed(problem);
    } finally {
      this.sending = this.send.disabled = false;
    }
  }

  // run begins a run, after the person has decided what is open. Without a decision words are sent as a message: they
  // also reach a run that begins meanwhile.
  async run(body, message) {
    const made = await decisions(this.task);
    if (!made) return;
    if (message && (made.join || !Object.keys(made.chosen).length)) this.accepted(await act('POST', taskPath(this.task, '/messages'), message, this.key));
    else if (!made.join) this.accepted(await act('POST', taskPath(this.task, '/runs'), { ...body, ...made.chosen }, message && this.key), !message);
  }

  // accepted forgets the draft. A task that continues as a fork goes on on a page of its own.
  accepted({ task_id: task }, keep = false) {
    if (!keep) {
      this.words.value = '';
      this.keep();
    }
    if (task !== this.task.split(':').at(-1)) location.href = '/tasks/' + encodeURIComponent(task);
  }

  async cancel() {
    await act('POST', taskPath(this.task, '/cancel'));
  }

  async again() {
    await this.run({ yes: true });
  }

  // shows brings the buttons and the line of the state up to date.
  shows({ status = this.status, doing = this.doing, usage = this.usage, asks = this.asks }) {
    Object.assign(this, { status, doing, usage, asks });
    const works = working.includes(status);
    this.state.textContent = status === 'running' ? marked(doing || 'The model works') + ' …'
      : status === 'waiting' ? 'Waits for your answer' : status === 'queued' ? 'Waits for a free place' : status === 'delegated' ? 'Waits for a subtask'
      : status ? status[0].toUpperCase() + status.slice(1) : '';
    this.state.dataset.status = status;
    this.send.textContent = asks ? 'Answer' : works && status !== 'waiting' ? 'Queue' : 'Send';
    this.now.hidden = status !== 'running';
    this.stop.hidden = !works;
    this.retry.hidden = works || !['interrupted', 'failed', 'cancelled', 'limit'].includes(status);
    this.spent.textContent = usage ? spending(usage) : '';
  }

  async loadQueue() {
    const { items } = await get(taskPath(this.task, '/queue'));
    this.queue.hidden = !items.length;
    this.queue.replaceChildren(...items.map((q) => el('li', {}, el('span', {}, q.text || 'Images'),
      button('Take back', tried(async () => {
        await act('DELETE', taskPath(this.task, '/queue/' + encodeURIComponent(q.id)));
        if (!this.words.value) { this.words.value = q.text; this.keep(); }
        note('The message was taken out of the queue.');
      })))));
  }
}

function spending({ usage, context_tokens }) {
  const n = new Intl.NumberFormat();
  return [usage.cost === null ? '' : '$' + usage.cost, n.format(usage.tokens_in + usage.cache_reads + usage.cache_writes) + ' in',
    n.format(usage.tokens_out) + ' out', context_tokens ? n.format(context_tokens) + ' in context' : ''].filter(Boolean).join(' · ');
}
