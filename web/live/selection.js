// Several tasks of the list at once: chosen by their boxes, acted on one after the other. What fails is named, and what
// was done is taken back as one act.

import { label, putBack } from './actions.js';
import { act, get, taskPath } from './api.js';
import { button, counted, dialog, el, field, note, tried } from './ui.js';

export class Selection {
  // changed is called when tasks were changed.
  constructor(main, keys, changed) {
    this.main = main;
    this.changed = changed;
    this.chosen = new Map(); // titles by the names of tasks, in the order of the list
    this.count = el('span', { role: 'status' });
    this.bar = el('div', { id: 'selected', class: 'acts', role: 'toolbar', 'aria-label': 'Selected tasks', hidden: true }, this.count,
      button('Tag', () => this.tag(), { 'data-does': 'tag' }),
      button('Pin', () => this.pin(true), { 'data-does': 'pin' }),
      button('Unpin', () => this.pin(false), { 'data-does': 'unpin' }),
      button('Export', () => this.save(), { 'data-does': 'export' }),
      button('Delete', () => this.remove(), { 'data-does': 'delete', class: 'danger' }),
      button('All on this page', () => this.all(), { 'data-does': 'all' }),
      button('Clear', () => this.clear(), { 'data-does': 'clear' }));
    main.after(this.bar);
    main.addEventListener('click', (e) => {
      if (!e.target.matches?.('input.pick')) return;
      this.choose(e.target.closest('[data-task]'), e.target.checked, e.shiftKey);
    });
    keys.on(['x'], 'select the task, or not', () => this.toggle(false));
    keys.on(['X'], 'select all from the one selected last up to it', () => this.toggle(true));
    keys.on(['*'], 'select all on this page, or none', () => (this.size ? this.clear() : this.all()));
    keys.on(['E'], 'export what is selected as one archive', () => this.size > 0 && this.save());
    keys.on(['Escape'], '', () => this.size > 0 && this.clear());
    this.adorn();
  }

  get size() {
    return this.chosen.size;
  }

  rows() {
    return [...this.main.querySelectorAll('.row[data-task], .group[data-task]')];
  }

  // adorn gives each row its box. A task that the list shows no more is not selected any more: no act is about what is
  // out of sight.
  adorn() {
    const before = this.chosen;
    this.chosen = new Map();
    for (const row of this.rows()) {
      const link = row.querySelector('.c-title > a, h2 a'), title = link.textContent;
      let box = row.querySelector('input.pick');
      if (!box) {
        box = el('input', { type: 'checkbox', class: 'pick', 'aria-label': 'Select ' + title });
        (row.querySelector('.c-status') || row.querySelector('h2')).prepend(box);
      }
      box.checked = before.has(row.dataset.task);
      if (box.checked) this.chosen.set(row.dataset.task, title);
    }
    this.shows();
  }

  shows() {
    this.bar.hidden = !this.size;
    this.count.textContent = this.size ? this.size + ' selected' : '';
    for (const row of this.rows()) row.classList.toggle('picked', this.chosen.has(row.dataset.task));
  }

  choose(row, on, range = false) {
    const rows = this.rows().filter((r) => r.checkVisibility());
    const to = rows.indexOf(row), from = rows.findIndex((r) => r.dataset.task === this.last);
    const some = range && from >= 0 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1) : [row];
    for (const r of some) r.querySelector('input.pick').checked = on;
    this.last = row.dataset.task;
    for (const r of this.rows()) {
      if (r.querySelector('input.pick').checked) this.chosen.set(r.dataset.task, r.querySelector('.c-title > a, h2 a').textContent);
      else this.chosen.delete(r.dataset.task);
    }
    this.shows();
  }

  toggle(range) {
    const row = document.activeElement?.closest?.('.row[data-task], .group[data-task]');
    if (!row) return false;
    this.choose(row, range || !this.chosen.has(row.dataset.task), range);
  }

  all() {
    for (const row of this.rows()) if (row.checkVisibility()) this.choose(row, true);
  }

  clear() {
    this.chosen.clear();
    this.adorn();
  }

  // each does something to each task, one after the other, and gives what was done and what failed.
  async each(tasks, what) {
    const done = [], failed = [];
    for (const [i, [task, title]] of tasks.entries()) {
      if (tasks.length > 3) note(`${i + 1} of ${tasks.length}: ${title} …`);
      try {
        done.push({ task, title, back: await what(task, title) });
      } catch (problem) {
        failed.push({ title, why: problem.message });
      }
    }
    return { done, failed };
  }

  // report says what became of an act on several tasks, and offers to take it back as one.
  async report({ done, failed }, said) {
    this.back = done.length ? tried(() => this.undo(done)) : null;
    note(done.length ? said(done) : 'Nothing was done.', this.back ? { does: 'Undo', act: this.back } : { wrong: failed.length > 0 });
    await this.changed();
    if (failed.length) await this.named(failed);
  }

  named(failed) {
    return dialog(counted(failed.length, 'task') + ' could not be changed', el('ul', { class: 'failures' },
      failed.map((f) => el('li', { dir: 'auto' }, el('b', {}, f.title), ': ' + f.why))), { does: '' });
  }

  async undo(done) {
    this.back = null;
    const { done: again, failed } = await this.each(done.toReversed().map((d) => [d, d.title]), ({ back }) => back?.());
    note(counted(again.length, 'task') + (again.length === 1 ? ' is as it was.' : ' are as they were.'));
    await this.changed();
    if (failed.length) await this.named(failed);
  }

  tag() {
    return tried(async () => {
      const d = await dialog('Tag ' + counted(this.size, 'task'), [
        field('Add these tags, with commas between them', el('input', { name: 'add', autofocus: true })),
        field('Remove these', el('input', { name: 'remove' }))], { does: 'Tag' });
      if (!d) return;
      const words = (name) => d.data.get(name).split(',').map((t) => t.trim()).filter(Boolean);
      const body = { add_tags: words('add'), remove_tags: words('remove') };
      if (!body.add_tags.length && !body.remove_tags.length) return;
      await this.report(await this.each([...this.chosen], (task) => label(task, body)), (done) => counted(done.length, 'task') + ' tagged.');
    })();
  }

  pin(pinned) {
    return tried(async () => this.report(await this.each([...this.chosen], (task) => label(task, { pinned })),
      (done) => counted(done.length, 'task') + (pinned ? ' pinned.' : ' unpinned.')))();
  }

  // save loads one archive with all of them.
  save() {
    const [first, ...rest] = this.chosen.keys();
    const query = new URLSearchParams({ format: 'archive' });
    if (rest.length) query.set('also', rest.join(','));
    el('a', { href: taskPath(first, '/export?' + query), download: '' }).click();
    note(counted(this.size, 'task') + ' as one archive: the browser saves it.');
  }

  // below are the names of the subtasks of a task, at any depth.
  async below(task) {
    const { child_ids: children } = await get(taskPath(task));
    if (!children.length) return [];
    const names = ({ children: list }) => list.flatMap((b) => [b.task.source === 'roost' ? b.task.id : b.task.source + ':' + b.task.id, ...names(b)]);
    return names(await get(taskPath(task, '/tree')));
  }

  remove() {
    return tried(async () => {
      let tasks = [...this.chosen];
      const families = new Map();
      for (const [task] of tasks) families.set(task, await this.below(task));
      const also = new Set([...families.values()].flat()), extra = [...also].filter((t) => !this.chosen.has(t)).length;
      const words = extra ? `They have ${counted(extra, 'subtask')} that ${extra === 1 ? 'is' : 'are'} not selected. ` : '';
      const d = await dialog('Delete ' + counted(tasks.length, 'task') + '?', [el('p', {}, words + 'The trash keeps what is deleted.'),
        el('ul', { class: 'some' }, tasks.slice(0, 6).map(([, title]) => el('li', { dir: 'auto' }, title)), tasks.length > 6 && el('li', {}, `and ${tasks.length - 6} more`))],
      { does: extra ? `Delete them with ${counted(extra, 'subtask')}` : `Delete ${counted(tasks.length, 'task')}`,
        also: extra ? [['keep', 'Delete them alone']] : [], danger: true });
      if (!d) return;
      const keep = d.value === 'keep';
      if (!keep) tasks = tasks.filter(([task]) => !also.has(task)); // a subtask goes with the task above it
      await this.report(await this.each(tasks, async (task) => {
        const gone = await act('DELETE', taskPath(task, families.get(task).length ? '?subtasks=' + (keep ? 'keep' : 'delete') : ''));
        return () => putBack(gone);
      }), (done) => counted(new Set(done.flatMap(({ task }) => [task, ...(keep ? [] : families.get(task))])).size, 'task') + ' in the trash.');
    })();
  }
}
