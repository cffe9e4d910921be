// Where a person writes to the task: words go to the run, wait in the queue, or start one. A draft is kept until the
// server has the words.

import { act, get, taskPath } from './api.js';
import { button, dialog, el, failed, field, note, tried } from './ui.js';

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
      const sent = await act('POST', taskPath(this.task, '/messages'), { text, delivery }, this.key);
      this.accepted(sent);
    } catch (problem) {
      await this.refused(problem, text).catch(failed);
    } finally {
      this.sending = this.send.disabled = false;
    }
  }

  accepted() {
    this.words.value = '';
    this.keep();
  }

  // refused offers what a task of another place needs before it goes on.
  async refused(problem, text) {
    const run = async (more) => {
      await act('POST', taskPath(this.task, '/runs'), { message: text ? { text } : undefined, yes: text ? undefined : true, ...more });
      if (text) this.accepted();
    };
    if (problem.code === 'untrusted_settings') {
      const d = await dialog('This task comes from elsewhere', el('p', {}, problem.message),
        { does: 'Go on with my own settings', also: [['trust', 'Accept the settings of the task']] });
      if (d) await run(d.value === 'trust' ? { trust_settings: true } : { own_settings: true });
    } else if (problem.code === 'other_model') {
      const d = await dialog('Another model would answer', el('p', {}, problem.message), { does: 'Go on with ' + problem.document.model });
      if (d) await run({ model: problem.document.model });
    } else if (problem.code.startsWith('workspace')) {
      const d = await dialog('The folder of the task is not there', [el('p', {}, problem.message),
        field('Folder', el('input', { name: 'workspace', required: true }))], { does: 'Go on there' });
      if (d) await run({ workspace: d.data.get('workspace') });
    } else {
      failed(problem);
    }
  }

  async cancel() {
    await act('POST', taskPath(this.task, '/cancel'));
  }

  async again() {
    try {
      await act('POST', taskPath(this.task, '/runs'), { yes: true });
    } catch (problem) {
      await this.refused(problem, '');
    }
  }

  // shows brings the buttons and the line of the state up to date.
  shows({ status = this.status, doing = this.doing, usage = this.usage, asks = this.asks }) {
    Object.assign(this, { status, doing, usage, asks });
    const works = working.includes(status);
    this.state.textContent = status === 'running' ? (doing || 'The model works') + ' …'
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
