// The page of one task: its messages, what is under way, its questions, and the field to write to it.

import { again, bar, condense, copyCommand, fork, pin, remove, rename, repair, restore, restoreTo, rewind, tag, undo } from './actions.js';
import { get, taskPath } from './api.js';
import { switchMode, switchModel } from './choose.js';
import { Composer } from './composer.js';
import { Messages } from './messages.js';
import { Questions } from './questions.js';
import { Side } from './side.js';
import { Streaming } from './streaming.js';
import { button, el, note, quietly, short, titled, tried } from './ui.js';

export class TaskPage {
  constructor(main, keys) {
    const d = main.dataset;
    this.id = d.task;
    this.main = main;
    this.said = 0; // how often an event said the state
    this.times = new Map(); // of the newest messages: ts by number, since tools name their message by number
    this.messages = new Messages(d.task, document.getElementById('messages'), {
      first: +d.first || 0, last: +d.last || 0, end: !document.getElementById('newer'), rendered: !d.view || d.view === 'messages',
    });
    this.streaming = new Streaming(document.getElementById('live'), this.messages);
    this.questions = new Questions(d.task, document.getElementById('questions'));
    const replaced = this.messages.onrows;
    this.messages.onrows = (rows) => {
      replaced(rows);
      const was = this.selected;
      if (was && !was.isConnected) this.select(rows.find((r) => r.dataset.index === was.dataset.index && r.dataset.ts === was.dataset.ts), false);
      this.speak(rows.findLast((r) => r.matches('.model, .result') && !r.hidden));
    };
    this.spoken = +this.messages.rows().at(-1)?.dataset.ts || 0;
    main.append(this.voice = el('p', { class: 'quiet', role: 'status' }));
    this.questions.keeping = (change) => this.messages.keeping(change);
    this.composer = new Composer(d.task, document.getElementById('composer'), this.commands(), () => this.questions.answerable());
    this.mode = button('Mode', tried(() => switchMode(this.id)), { 'data-does': 'mode', hidden: true, title: 'The mode of the next run' });
    this.model = button('Model', tried(() => switchModel(this.id)), { 'data-does': 'model', hidden: true, title: 'The model of the next run' });
    this.composer.with.append(this.mode, this.model);
    this.streaming.ondoing = () => this.composer.shows({ doing: this.streaming.doing });
    this.questions.onchange = () => this.composer.shows({ asks: this.questions.all().length > 0 });
    const drop = tried(() => this.dropped = remove(this.id, ['All tasks', '/']));
    const acts = bar(this.id, drop);
    (document.querySelector('.taskhead') || main).append(acts);
    document.querySelector('.taskhead .damaged:last-of-type')?.append(' ', button('Repair', tried(async () => {
      await repair(this.id);
      location.reload();
    }), { class: 'repair', 'data-does': 'repair' }));
    this.rowActs = el('div', { id: 'message-acts', class: 'acts' },
      button('Go back to here', () => this.onRow((n) => rewind(this.id, n)), { 'data-does': 'rewind' }),
      button('Fork here', () => this.onRow((n) => fork(this.id, n)), { 'data-does': 'fork-here' }),
      this.editing = button('Edit and send again', () => this.edit(), { 'data-does': 'edit' }),
      button('Copy link', () => this.onRow((n) => navigator.clipboard.writeText(location.origin + location.pathname + '#ui-' + n).then(() => note('The link is copied.'))), { 'data-does': 'link' }));
    this.keys(keys, drop);
    const list = this.messages.list;
    this.side = new Side(this.id, document.querySelector('.side'));
    list.addEventListener('click', (e) => {
      const number = e.target.closest('header > a[href^="#"], .item > a[href^="#"]');
      if (number && !e.ctrlKey && !e.metaKey) {
        navigator.clipboard?.writeText(number.href).then(() => note('The link to ' + number.textContent + ' is copied.'), () => {});
        return; // and the browser goes there
      }
      const to = e.target.closest('[data-restore]')?.dataset.restore;
      if (to) {
        e.preventDefault();
        tried(() => restoreTo(this.id, to))();
        return;
      }
      const row = e.target.closest('[data-index]');
      if (row && !e.target.closest('a, button, summary, input') && getSelection().isCollapsed) this.select(row, false);
    });
    if (!location.hash && this.messages.end) this.messages.toEnd();
    const place = document.getElementById('composer');
    let height = place.offsetHeight;
    new ResizeObserver(() => {
      const grown = place.offsetHeight - height;
      height += grown;
      if (this.messages.atEnd(grown)) this.messages.toEnd();
    }).observe(place);
    this.refresh().catch(quietly);
    addEventListener('hashchange', () => this.open(location.hash));
    const { n, y } = history.state || {};
    if (n && !this.messages.toPlace({ n, y })) this.open('#ui-' + n);
    else if (!n && location.hash) this.open(location.hash);
    if (!this.messages.rendered) return;
    // The way back leads to what was looked at: the pages of a task are of different lengths.
    history.scrollRestoration = 'manual';
    addEventListener('pagehide', () => {
      const { n, y } = !this.messages.atEnd() && this.messages.place() || {};
      history.replaceState(n ? { n, y } : null, '');
    });
  }

  // speak gives screen readers what the model said last, once it is whole: text that still comes would interrupt itself.
  speak(row) {
    const text = row?.querySelector('.item').textContent.trim().slice(0, 2000);
    if (!row || +row.dataset.ts < this.spoken || text === this.voice.textContent) return;
    this.spoken = +row.dataset.ts;
    this.voice.textContent = text;
  }

  keys(keys, drop) {
    const on = (key, text, act) => keys.on(key, text, act);
    on(['j', 'ArrowDown'], 'the next message', () => this.move(1));
    on(['k', 'ArrowUp'], 'the message before', () => this.move(-1));
    on(['g'], 'the oldest message that is loaded', () => this.select(this.messages.rows()[0]));
    on(['G'], 'the newest message', () => this.messages.showEnd().then(() => { this.select(this.messages.rows().at(-1)); this.messages.toEnd(); }));
    on(['o', ' '], 'fold or unfold the message', () => this.fold());
    on(['i', 'c'], 'write to the task', () => this.composer.words.focus());
    on(['y'], 'approve', (e) => this.questions.press('y', e));
    on(['n'], 'deny: write the reason, Enter sends it', (e) => this.questions.press('n', e));
    on(['1', '2', '3', '4', '5', '6', '7', '8', '9'], 'answer with a suggestion', (e) => this.questions.press(e.key, e));
    on(['a'], 'go to the open question', () => this.questions.current()?.focus());
    on(['s'], 'stop the run', () => { if (!this.composer.stop.hidden) this.composer.stop.click(); });
    on(['r'], 'continue the task', () => { if (!this.composer.retry.hidden) this.composer.retry.click(); });
    on(['z'], 'go back to before the message', () => this.onRow((n) => rewind(this.id, n)));
    on(['E'], 'edit what you said there, and send it again', () => this.edit());
    on(['f'], 'fork the task at the message', () => this.onRow((n) => fork(this.id, n)));
    on(['u'], 'take back what was last done', tried(() => undo(this.id)));
    on(['e'], 'rename the task', tried(() => rename(this.id)));
    on(['t'], 'its tags', tried(() => tag(this.id)));
    on(['p'], 'pin it, or not', tried(() => pin(this.id)));
    on(['Y'], 'copy the command that goes on with it', tried(() => copyCommand(this.id)));
    on(['#', 'Delete'], 'delete the task', drop);
    on(['h'], 'all tasks', () => { location.href = '/'; });
  }

  // commands are what a line with a "/" does on this page; the names are those of the chat on a terminal.
  commands() {
    return [
      ['condense', 'have older history summarised', (words) => condense(this.id, words)],
      ['fork', 'go on in a new task with this history', (words) => fork(this.id, 0, words)],
      ['rewind', 'go back to before the selected message, or the last', () => this.onRow((n) => rewind(this.id, n))],
      ['edit', 'edit what you said last, and send it again', () => this.edit()],
      ['restore', 'put files back to a checkpoint', () => restore(this.id)],
      ['undo', 'take back what was last done', () => undo(this.id)],
      ['rename', 'give the task a title', (words) => rename(this.id, words)],
      ['tag', 'give and take tags', () => tag(this.id)],
      ['mode', 'the mode of the next run', (words) => switchMode(this.id, words)],
      ['model', 'the model of the next run', (words) => switchModel(this.id, words)],
      ['image', 'an image that goes along with your next words', () => this.composer.writing.pick.click()],
      ['stop', 'stop the run, saved', () => this.composer.cancel()],
      ['retry', 'go on without further words', () => this.composer.again()],
    ].map(([name, about, act]) => ({ name, about, act: async (words) => act(words) }));
  }

  // edit takes the task back to before the selected message of the person, or their last one, and puts its words into the
  // draft.
  edit() {
    this.onRow(async (n) => {
      if (await again(this.id, n, this.composer.writing.draft)) this.composer.words.focus();
    }, '.user', 'You have said nothing here yet.');
  }

  // onRow acts on the selected message, if it is one of some, or on the last of those. The model's messages have numbers of
  // their own.
  onRow(act, some = '*', none = 'There is no message yet.') {
    if (!['messages', 'raw'].includes(this.main.dataset.view)) return note('Open the conversation for that: the messages of the model have other numbers.');
    const row = [...this.messages.rows().filter((r) => r.checkVisibility()), this.selected].findLast((r) => r?.isConnected && r.matches(some));
    if (!row) return note(none);
    tried(act)(+row.dataset.index);
  }

  select(row, focus = true) {
    if (!row) return;
    if (this.selected !== row) this.selected?.removeAttribute('aria-current');
    this.selected = row;
    row.setAttribute('aria-current', 'true');
    row.tabIndex = -1;
    this.editing.hidden = !row.matches('.user');
    if (row.id.startsWith('ui-')) row.append(this.rowActs);
    if (!focus) return;
    row.focus({ preventScroll: true });
    row.scrollIntoView({ block: 'nearest' });
  }

  move(by) {
    const rows = this.messages.rows().filter((r) => r.checkVisibility());
    const at = rows.indexOf(this.selected);
    this.select(rows[at < 0 ? rows.length - 1 : Math.max(0, Math.min(rows.length - 1, at + by))]);
  }

  fold() {
    const row = this.selected;
    if (!row) return false;
    for (const d of row.querySelectorAll('details')) d.open = !d.open;
  }

  // open goes to a message by its address. The page of one that is not loaded is another page.
  open(hash) {
    const n = +(/^#ui-(\d+)$/.exec(hash)?.[1] || 0), shown = this.messages;
    const row = n && shown.byNumber(n);
    if (row) {
      this.select(row);
      row.scrollIntoView({ block: 'center' });
    } else if (n && shown.rendered && (n < shown.first || !shown.end && n > shown.last) && +new URLSearchParams(location.search).get('at') !== n) {
      location.replace(location.pathname + '?at=' + n + hash);
    }
  }

  // refresh reads what is not in messages: the state, what was spent, the queue, the questions.
  async refresh() {
    await Promise.all([this.summary(), this.composer.loadQueue(), this.questions.load()]);
  }

  // is shows a state that an event said.
  is(status) {
    this.said++;
    this.composer.shows({ status });
  }

  async summary() {
    const said = this.said, task = await get(taskPath(this.id));
    this.composer.shows({ status: said === this.said ? task.status : undefined, usage: task }); // an event since then is newer
    this.shows(this.mode, task.mode);
    this.shows(this.model, task.model);
    if (!this.begun && task.status === 'running') this.underWay().catch(quietly);
    this.begun = true;
    const title = document.querySelector('.taskhead h1');
    if (title && task.title) {
      title.textContent = short(task.title);
      titled({ text: title.textContent + ' · Roost' });
    }
  }

  shows(choice, value) {
    choice.textContent = value ? value.split('/').at(-1) : 'Choose ' + choice.dataset.does;
    choice.setAttribute('aria-label', choice.title + ': ' + (value || choice.textContent));
    choice.hidden = false;
  }

  // underWay shows what began before the server rendered the page: text that was being written comes from the disk, and
  // the journal knows which tools run.
  async underWay() {
    const window = await get(taskPath(this.id, '/messages?limit=5'));
    for (const m of window.items) if (m.partial) this.streaming.delta('message.delta', { ts: m.ts, offset: 0, text: m.text || '', call: m.say === 'command_output' });
    const journal = await get(taskPath(this.id, '/journal?limit=30'));
    const running = new Map();
    for (const e of journal.items.flatMap((c) => c.events || [])) {
      if (e.type === 'tool.started') running.set(e.call, e);
      if (e.type === 'tool.finished') running.delete(e.call);
      if (e.type === 'run.started') running.clear();
    }
    for (const e of running.values()) this.streaming.tool(e);
  }

  // result brings the message of a tool up to date, which shows the outcome, too. Where the message is not known it is
  // one of the last.
  result(started) {
    const ts = this.times.get(started?.message);
    for (const one of ts ? [ts] : this.messages.rows().slice(-6).map((r) => r.dataset.ts)) if (one) this.messages.note({ ts: one });
  }

  // again is called when the page is live after a break: what it asked meanwhile may have got no answer.
  again() {
    this.messages.again();
    this.side.later();
    this.composer.writing.draft.load().catch(quietly);
    this.refresh().catch(quietly);
  }

  // lost is called when events were missed: all that is shown is read anew.
  lost() {
    this.streaming.end();
    this.side.later();
    this.messages.reload();
    this.refresh().catch(quietly);
  }

  events(all) {
    this.side.events(all);
    const mine = this.id.split(':').at(-1), list = all.filter((e) => e.data.task_id === mine);
    const wants = new Set();
    for (const { type, data: d } of list) {
      switch (type) {
        case 'message.delta': case 'reasoning.delta': case 'tool.delta': case 'wait.delta':
          this.streaming.delta(type, d);
          break;
        case 'message.added': case 'message.changed':
          if (d.history !== 'ui') break;
          this.streaming.message(d.ts, d.content?.partial);
          this.times.set(d.message, String(d.ts));
          if (this.times.size > 500) this.times.delete(this.times.keys().next().value);
          if (!d.content?.partial || type === 'message.added') this.messages.note({ added: type === 'message.added', ts: String(d.ts) });
          break;
        case 'message.text_saved':
          this.streaming.saved();
          break;
        case 'turn.started':
          this.is('running');
          break;
        case 'tool.started':
          this.is('running');
          this.streaming.tool(d);
          break;
        case 'tool.finished':
          this.result(this.streaming.toolEnded(d));
          break;
        case 'question.opened':
          this.is('waiting');
          wants.add('questions');
          break;
        case 'question.closed':
          this.questions.closed({ ...d, id: d.task_id + '.' + d.question });
          if (!d.reason) this.is('running');
          break;
        case 'input.queued': case 'input.taken':
          wants.add('queue');
          break;
        case 'run.queued': case 'run.started': case 'run.waiting':
          this.is({ 'run.queued': 'queued', 'run.started': 'running', 'run.waiting': 'waiting' }[type]);
          wants.add('summary'); // it may wait for a subtask
          break;
        case 'run.ended':
          this.streaming.end();
          wants.add('summary').add('queue').add('questions');
          break;
        case 'checkpoint.saved':
          this.messages.latest();
          break;
        case 'usage.changed': case 'turn.ended': case 'task.changed': case 'subtask.started': case 'subtask.ended':
          wants.add('summary');
          break;
        case 'history.condensed': case 'history.truncated':
          if (!d.undoes && !d.redoes) break; // what was added says so itself
          // fallthrough
        case 'history.rewound': case 'history.undone': case 'message.hidden': case 'foreign.imported': case 'task.adopted':
          this.streaming.end();
          this.messages.reload();
          wants.add('summary').add('queue').add('questions');
          break;
        case 'task.deleted':
          Promise.resolve(this.dropped).catch(() => false).then((here) => here || note('The task was deleted. The trash keeps it.', { does: 'All tasks', act: () => { location.href = '/'; } }));
          break;
      }
    }
    if (wants.has('summary')) this.summary().catch(quietly);
    if (wants.has('queue')) this.composer.loadQueue().catch(quietly);
    if (wants.has('questions')) this.questions.load().catch(quietly);
  }
}
