// Open questions of a task, and their answers. A question that has just come takes no answer for half a second: a key or
// a click that was meant for something else does not approve it.

import { act, get } from './api.js';
import { appendToDraft } from './draft.js';
import { store, stored } from './storage.js';
import { button, diffOf, el, failed, note, short } from './ui.js';

const armed = 500; // milliseconds
const slot = 'roost-answers', most = 20; // answers that were begun

// begun gives what a person has begun to write to a question, and keeps other words in its place; '' forgets it.
function begun(id, words) {
  const { [id]: was = '', ...others } = stored(slot, {});
  if (words !== undefined) store(slot, Object.fromEntries([...Object.entries(others), [id, words]].filter(([, w]) => w).slice(-most)));
  return was;
}

const yesOrNo = ['approval', 'damage', 'limit'];

export class Questions {
  constructor(task, section) {
    this.task = task;
    this.section = section;
    this.keeping = (change) => change(); // what the person looks at stays in its place
    this.seen = new Map(); // by id: when it was shown to a person
    document.addEventListener('visibilitychange', () => {
      for (const [id, at] of this.seen) if (at === Infinity) this.seen.set(id, performance.now());
    });
  }

  // load shows what is open. It replaces what the server rendered by the same with what acts.
  async load() {
    const { items } = await get('/v1/questions' + (this.task ? '?task=' + encodeURIComponent(this.task) : ''));
    const open = new Set(items.map((q) => q.id));
    for (const e of this.all()) {
      if (!open.has(e.dataset.question)) this.keep(e.dataset.question);
      else if (this.seen.has(e.dataset.question)) continue;
      e.remove();
    }
    for (const q of items) if (!this.element(q.id)) this.show(q);
    this.onchange?.();
  }

  all() {
    return [...this.section.querySelectorAll('article[data-question]:not(.closed)')];
  }

  // answerable reports whether a question is open that words may answer: one that has not just come.
  answerable() {
    return this.all().some((e) => performance.now() - this.seen.get(e.dataset.question) >= armed);
  }

  element(id) {
    return this.section.querySelector(`article[data-question="${CSS.escape(id)}"]`);
  }

  // current is the question that has the focus, else the first one.
  current() {
    const all = this.all();
    return all.find((e) => e.contains(document.activeElement)) || all[0];
  }

  show(q) {
    const focused = document.activeElement?.closest('.closed');
    for (const e of this.section.querySelectorAll('.closed')) e.remove();
    this.seen.set(q.id, document.hidden ? Infinity : performance.now());
    const approval = yesOrNo.includes(q.kind);
    const words = el('textarea', { rows: 1, name: 'words', 'aria-label': approval ? 'Words for the model, with a yes or a no' : 'An answer in your own words',
      placeholder: approval ? 'Reason or remark (optional)' : 'Your own words' });
    const answer = (body) => (event) => this.answer(q, body, words.value.trim(), event);
    const e = el('article', { class: 'ask question', 'data-question': q.id, 'data-kind': q.kind, tabindex: -1, 'aria-label': 'Question' },
      el('header', {}, el('span', { class: 'status s-waiting' }, q.kind === 'approval' ? 'wants approval' : 'asks'), ' ',
        !this.task && el('a', { href: '/tasks/' + encodeURIComponent(q.task_id) + '#questions', dir: 'auto' }, short(q.title) || q.task_id)),
      el('p', { class: 'asks', dir: 'auto' }, q.text || 'The task asks whether to go on.'),
      q.command && el('pre', { class: 'command', tabindex: 0 }, q.command),
      q.cwd && el('p', { class: 'where' }, 'in ' + q.cwd),
      q.diff && diffOf(q.diff),
      approval && q.always && el('p', { class: 'where' }, 'Always allows ' + q.always + '.'),
      q.choices?.length && el('ol', { class: 'choices' }, q.choices.map((c, i) => el('li', {},
        button(c, answer({ choice: i + 1 }), { 'data-key': i + 1 }), q.modes?.[i] && el('span', { class: 'mode' }, 'in mode ' + q.modes[i])))),
      el('div', { class: 'acts' },
        approval && button('Approve', answer({ approve: true }), { class: 'primary', 'data-does': 'approve' }),
        approval && button('Deny', answer({ approve: false }), { class: 'danger', 'data-does': 'deny' }),
        approval && q.always && button('Always', answer({ approve: true, always: true }), { 'data-does': 'always', title: 'Approve, and allow ' + q.always }),
        words,
        q.kind === 'mistake_limit' && button('End the run', answer({ approve: false }), { class: 'danger', 'data-does': 'deny' }),
        !approval && button('Answer', answer({}), { class: 'primary', 'data-does': 'answer' })));
    words.value = begun(q.id);
    words.addEventListener('input', () => begun(q.id, words.value));
    words.addEventListener('keydown', (k) => {
      if (k.key !== 'Enter' || k.shiftKey || k.isComposing) return;
      k.preventDefault();
      // In a reason, Enter says no: a person who explains means to refuse, and a yes takes a press of its own.
      if (words.value.trim()) e.querySelector(approval ? '[data-does=deny]' : '[data-does=answer]').click();
    });
    this.keeping(() => {
      this.section.append(e);
      this.section.hidden = false;
    });
    if (focused) e.focus({ preventScroll: true });
    this.onchange?.();
  }

  async answer(q, body, words, event) {
    const e = this.element(q.id);
    if (!e || e.dataset.sent) return;
    // A key that was pressed while the page was busy counts from when it was pressed.
    if (Math.min(event.timeStamp, this.pressed ?? Infinity) - this.seen.get(q.id) < armed) {
      note('The question has just come. Press again if you mean it.');
      return;
    }
    if (body.choice === undefined && body.approve === undefined && !words) return void e.querySelector('textarea').focus();
    if (words && body.choice === undefined) body = { ...body, text: words };
    e.dataset.sent = true;
    try {
      await act('POST', '/v1/questions/' + encodeURIComponent(q.id) + '/answer', { ...body, seen: q.event });
      begun(q.id, '');
    } catch (problem) {
      if (problem.code === 'question_answered') {
        const a = problem.document.answer || {};
        this.keep(q.id, a.text);
        this.closed({ id: q.id, by: a.by, text: a.text, approve: a.approve }, true);
        return;
      }
      delete e.dataset.sent;
      if (problem.code === 'question_not_found' || problem.code === 'question_stale') this.load().catch(failed);
      failed(problem);
    }
  }

  // closed says who answered, in the place of the question, until another one comes.
  closed(d, late = false) {
    const e = this.element(d.id);
    if (!e || e.matches('.closed')) return;
    this.seen.delete(e.dataset.question);
    if (!e.dataset.sent) this.keep(d.id, d.text);
    const what = d.reason ? 'It is not asked any more: ' + d.reason
      : (d.approve === true ? 'Approved' : d.approve === false ? 'Denied' : 'Answered') + ' by ' + (d.by || 'somebody') + (d.text ? ': ' + d.text : '');
    const focused = e.contains(document.activeElement);
    const asked = e.querySelector('.asks')?.textContent || '';
    e.className = 'ask question closed';
    e.replaceChildren(el('p', { role: 'status' }, (late ? 'Somebody was faster. ' : '') + what), el('p', { class: 'asks' }, asked.slice(0, 200)));
    if (focused) e.focus();
    this.onchange?.();
  }

  // keep puts what was begun into the draft of the next message, unless it became the answer.
  keep(id, answer) {
    const words = begun(id, '').trim(), task = this.task || id.slice(0, id.lastIndexOf('.'));
    if (!words || words === answer) return;
    const link = !this.task && ['To the message', '/tasks/' + encodeURIComponent(task) + '#composer'];
    appendToDraft(task, words).then(() => note('What you wrote is in the message field.', { link }), failed);
  }

  // press answers the current question by a key. A key that is held answers no second one.
  press(key, event) {
    const e = this.current();
    if (!e || event.repeat) return false;
    if (key === 'y') this.click(e, '[data-does=approve]', event);
    else if (key === 'n') (e.querySelector('[data-does=deny]') ? e.querySelector('textarea') : null)?.focus();
    else if (/^[1-9]$/.test(key)) this.click(e, `[data-key="${key}"]`, event);
    else return false;
    return true;
  }

  click(e, selector, event) {
    const b = e.querySelector(selector);
    if (!b) return;
    e.scrollIntoView({ block: 'nearest' });
    this.pressed = event.timeStamp;
    b.click();
    this.pressed = undefined;
  }
}
