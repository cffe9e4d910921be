// Where a person writes to the task: words go to the run, wait in the queue, or start one. A draft is kept until the
// server has the words.

import { act, get, taskPath } from './api.js';
import { askable, decisions } from './resume.js';
import { button, el, failed, marked, note, quietly, tried } from './ui.js';
import { Writing } from './writing.js';

const working = ['queued', 'running', 'waiting', 'delegated'];

export class Composer {
  // acts are what a line with a "/" may name: {name, about, act}; answerable gives whether words may answer a question.
  constructor(task, place, acts, answerable) {
    Object.assign(this, { task, answerable });
    this.status = '';
    this.writing = new Writing(task, {
      properties: { id: 'words', name: 'words', placeholder: 'Message', 'aria-label': 'Message to the task', enterkeyhint: 'send' },
      zone: document, acts, enter: () => this.submit('auto'),
    });
    this.words = this.writing.words;
    this.state = el('p', { id: 'activity', role: 'status' });
    this.spent = el('p', { id: 'spent' });
    this.queue = el('ol', { id: 'queue', 'aria-label': 'Messages that wait', hidden: true });
    this.send = el('button', { id: 'send', class: 'primary' }, 'Send');
    this.now = button('Interrupt', () => this.submit('interrupt'), { id: 'interrupt', hidden: true, title: 'Send it now, and let the run begin anew with it' });
    this.stop = button('Stop', tried(() => this.cancel()), { id: 'cancel', class: 'danger', hidden: true });
    this.retry = button('Continue', tried(() => this.again()), { id: 'retry', hidden: true });
    this.with = el('div', { class: 'acts with' }, this.writing.pick);
    const form = el('form', { id: 'compose', onsubmit: (e) => { e.preventDefault(); this.submit('auto'); } },
      this.queue, el('div', { class: 'line' }, this.writing.box, el('div', { class: 'acts' }, this.send, this.now, this.stop, this.retry)),
      el('div', { class: 'line' }, this.with, this.state, this.spent));
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
    this.writing.fit();
  }

  async submit(delivery) {
    const own = this.writing.act();
    if (own) {
      const typed = this.words.value;
      this.writing.clear();
      try {
        await own.act(own.rest);
      } catch (problem) {
        if (!this.words.value) { this.words.value = typed; this.words.dispatchEvent(new Event('input')); }
        failed(problem);
      }
      return;
    }
    if (!this.words.value.trim() && !this.writing.draft.images.length || this.sending) return;
    this.sending = this.send.disabled = this.words.readOnly = true;
    let sent;
    try {
      // Words for the queue answer no question that comes meanwhile: the person has not seen it.
      sent = await this.writing.draft.toSend(this.answerable() || !working.includes(this.status) ? 'auto' : 'queue');
      if (delivery === 'auto') delivery = sent.delivery;
      const text = sent.words.text.replace(/^\/\//, '/'); // two of them stand for one that is no command
      sent = { ...sent, words: { ...sent.words, text } };
      if (working.includes(this.status)) {
        try {
          this.accepted(await act('POST', taskPath(this.task, '/messages'), { ...sent.words, delivery }, sent.key), sent);
          return;
        } catch (problem) {
          if (!askable.includes(problem.code)) throw problem;
        }
      }
      await this.run(sent, delivery);
    } catch (problem) {
      failed(problem);
    } finally {
      this.sending = this.send.disabled = this.words.readOnly = false;
    }
  }

  // run begins a run, after the person has decided what is open. Without a decision words are sent as a message: they
  // also reach a run that begins meanwhile.
  async run(sent, delivery) {
    const made = await decisions(this.task);
    if (!made) return;
    if (sent && (made.join || !Object.keys(made.chosen).length)) {
      this.accepted(await act('POST', taskPath(this.task, '/messages'), { ...sent.words, delivery }, sent.key), sent);
    } else if (!made.join) {
      const body = sent ? { message: sent.words } : { yes: true };
      this.accepted(await act('POST', taskPath(this.task, '/runs'), { ...body, ...made.chosen }, sent?.key), sent);
    }
  }

  // accepted forgets the draft that was sent. A task that continues as a fork goes on on a page of its own.
  accepted({ task_id: task }, sent) {
    if (sent) this.writing.draft.taken(sent);
    if (task !== this.task.split(':').at(-1)) location.href = '/tasks/' + encodeURIComponent(task);
  }

  async cancel() {
    await act('POST', taskPath(this.task, '/cancel'));
  }

  async again() {
    await this.run();
  }

  // shows brings the buttons and the line of the state up to date.
  shows({ status = this.status, doing = this.doing, usage = this.usage, asks = this.asks }) {
    Object.assign(this, { status, doing, usage, asks });
    const works = working.includes(status);
    const text = status === 'running' ? marked(doing || 'The model works') + ' …'
      : status === 'waiting' ? 'Waits for your answer' : status === 'queued' ? 'Waits for a free place' : status === 'delegated' ? 'Waits for a subtask'
      : status ? status[0].toUpperCase() + status.slice(1) : '';
    if (text !== this.state.textContent) this.state.textContent = text; // a screen reader would speak the same again
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
        const { draft } = this.writing;
        if (q.images.length) draft.set({ images: [...draft.images, ...q.images] }, 0);
        await draft.append(q.text).catch(quietly);
        note('The message was taken out of the queue.');
      })))));
  }
}

function spending({ usage, context_tokens, context_window }) {
  const n = new Intl.NumberFormat();
  const share = context_window ? ` (${Math.min(Math.floor(context_tokens * 100 / context_window), 999)}%)` : '';
  return [usage.cost === null ? '' : '$' + usage.cost, n.format(usage.tokens_in + usage.cache_reads + usage.cache_writes) + ' in',
    n.format(usage.tokens_out) + ' out', context_tokens ? n.format(context_tokens) + ' in context' + share : ''].filter(Boolean).join(' · ');
}
