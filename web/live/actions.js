// What a person does to a task as a whole, or from one of its messages on. Each can be taken back, so few of them ask.

import { act, get, taskPath } from './api.js';
import { Draft } from './draft.js';
import { button, counted, dialog, el, field, note, short, tried } from './ui.js';

// undo takes back the newest action, or another one.
export async function undo(task, back = () => act('POST', taskPath(task, '/undo'), {})) {
  const done = await back();
  note('Taken back: ' + (done.undone?.kind || 'the last change') + '.', { does: 'Do it again', act: tried(() => act('POST', taskPath(task, '/redo'), {})) });
  return done;
}

const own = (task, id) => id === task.split(':').at(-1); // else the id is that of its fork

// noteChange notes what became of a change. A task that Roost does not write was changed in a fork: the note leads there. It
// gives the page of the fork, or undefined.
export function noteChange(task, { id, task_id = id }, text, more) {
  const fork = own(task, task_id) ? undefined : '/tasks/' + encodeURIComponent(task_id);
  note(fork ? text + ' It was done in a fork: Roost does not write the files of this task.' : text, fork ? { link: ['Open the fork', fork] } : more);
  return fork;
}

const undoable = (task, back) => ({ does: 'Undo', act: tried(() => undo(task, back)) });

// change sends a change of a task, and gives the answer, and what takes just that back: an action of somebody else may
// follow it. Without back nothing changed.
export async function change(task, method, path, body) {
  const newest = async () => (await get(taskPath(task, '/undo'))).undo[0]?.id;
  const before = await newest(), done = await act(method, path, body), made = await newest();
  return { done, back: made === before ? undefined : () => act('POST', taskPath(task, '/undo'), { expect: made }) };
}

// label changes labels of a task, and gives what takes just that back.
export const label = async (task, body) => (await change(task, 'PATCH', taskPath(task), body)).back;

// labelled changes labels, and says what became of that.
async function labelled(task, body, said) {
  const back = await label(task, body);
  note(back ? said : 'Nothing changed.', back && undoable(task, back));
}

export async function rename(task, words = '') {
  const was = short((await get(taskPath(task))).title);
  const d = await dialog('Rename the task', field('Title', el('input', { name: 'title', value: words || was, maxlength: 500, autofocus: true })), { does: 'Rename' });
  if (!d) return;
  const title = d.data.get('title').trim();
  if (title === was) return note('Nothing changed.');
  await labelled(task, { title: title || null }, 'The task has a new title.');
}

export async function tag(task) {
  const { tags } = await get(taskPath(task));
  const d = await dialog('Tags', field('Tags, with commas between them', el('input', { name: 'tags', value: tags.join(', '), autofocus: true })), { does: 'Keep' });
  if (!d) return;
  await labelled(task, { tags: d.data.get('tags').split(',').map((t) => t.trim()).filter(Boolean) }, 'The tags were changed.');
}

export async function pin(task) {
  const { pinned } = await get(taskPath(task));
  await labelled(task, { pinned: !pinned }, pinned ? 'The task is not pinned any more.' : 'The task is pinned.');
}

// putBack undoes a deletion: the task and the subtasks that went with it are back. gone is the answer to the deletion.
export const putBack = (gone) => act('POST', taskPath(gone.restore.split('/').at(-2), '/undo'), {});

// remove puts a task into the trash; where it has subtasks it asks what becomes of them, and says how many there are. link
// is where else to look.
export async function remove(task, link) {
  const { title: whole, child_ids: children } = await get(taskPath(task)), title = short(whole);
  let query = '';
  if (children.length) {
    const d = await dialog('Delete the task?', el('p', {}, `“${title}” has ${counted(children.length, 'subtask')}. The trash keeps what is deleted.`),
      { does: `Delete it with ${counted(children.length, 'subtask')}`, also: [['keep', 'Delete it alone']], danger: true });
    if (!d) return false;
    query = d.value === 'keep' ? '?subtasks=keep' : '?subtasks=delete';
  }
  const gone = await act('DELETE', taskPath(task, query));
  note(`“${title}” is in the trash.`, { link, does: 'Undo', act: tried(async () => {
    await putBack(gone);
    note(`“${title}” is back.`);
  }) });
  return true;
}

// repair shows what is wrong with a damaged task and what a repair would bring back, and repairs it. What it replaces is
// kept beside it.
export async function repair(task) {
  const check = (more) => act('POST', '/v1/checkups', { tasks: [task], ...more });
  const list = (findings) => el('ul', { class: 'failures' }, findings.map((f) => el('li', { dir: 'auto' }, el('b', {}, f.file || f.path), ': ' + f.problem,
    f.recovered && el('p', { class: 'where' }, 'A repair keeps: ' + f.recovered), f.lost && el('p', { class: 'where' }, 'Lost: ' + f.lost), f.copy && el('p', { class: 'where' }, 'What was replaced: ' + f.copy))));
  const found = await check();
  if (!found.damaged.length && !found.stale.length && !found.leftovers.length) {
    note('Nothing is wrong with this task now.');
    return;
  }
  const d = await dialog('Repair the task?', [list([...found.damaged, ...found.stale, ...found.leftovers]),
    el('p', {}, 'The files that a repair replaces are kept beside it.')], { does: 'Repair' });
  if (!d) return;
  const { repaired, damaged } = await check({ repair: true });
  await dialog(damaged.length ? 'Some of it cannot be repaired' : 'The task was repaired', [repaired.length > 0 && [el('p', {}, 'Repaired:'), list(repaired)],
    damaged.length > 0 && [el('p', {}, 'Still damaged:'), list(damaged)]], { does: '' });
}

export async function fork(task, at, title = '') {
  const d = await dialog('Fork the task', [el('p', {}, at ? `The new task has the messages up to #${at}.` : 'The new task has all messages.'),
    field('Title', el('input', { name: 'title', value: title, placeholder: 'as it is', autofocus: true }))], { does: 'Fork' });
  if (!d) return;
  const made = await act('POST', taskPath(task, '/forks'), { at: at ? '#' + at : undefined, title: d.data.get('title') || undefined, origin: 'web' });
  location.href = '/tasks/' + encodeURIComponent(made.id);
}

export async function condense(task, keep = '') {
  const plan = await act('POST', taskPath(task, '/condense'), { dry_run: true });
  const d = await dialog('Condense the history', [
    el('p', {}, `A summary will stand for ${counted(plan.messages, 'message')}; ${counted(plan.kept, 'message')} stay. The request has ${plan.tokens_before.toLocaleString()} tokens now.`),
    field('What the summary must keep', el('input', { name: 'keep', value: keep, autofocus: true }))], { does: 'Condense' });
  if (!d) return;
  note('The model writes the summary …');
  const { done, back } = await change(task, 'POST', taskPath(task, '/condense'), { keep: d.data.get('keep') || undefined, origin: 'web' });
  noteChange(task, done, `A summary stands for ${counted(done.messages, 'message')} now.`, back && undoable(task, back));
}

// rewind shows what a move back would take away, before it does it. It gives the answer, and the page of a fork.
export async function rewind(task, n) {
  const plan = await act('POST', taskPath(task, '/rewinds'), { to: '#' + n, dry_run: true });
  const checkpoints = await get(taskPath(task, '/checkpoints')).then((c) => (c.items || []).length, () => 0);
  const d = await dialog(`Go back to before #${n}?`, [
    !own(task, plan.id) && el('p', {}, 'This task goes on in a fork, and the fork goes back.'),
    el('p', {}, `${counted(plan.gone.ui, 'message')} will be hidden, ${counted(plan.left.ui, 'message')} will stay. Nothing is lost: undo brings them back.`),
    plan.calls.length > 0 && el('p', {}, `${counted(plan.calls.length, 'tool call')} will not count any more: ` + [...new Set(plan.calls.map((c) => c.name))].join(', ')),
    plan.queued > 0 && el('p', {}, `${counted(plan.queued, 'message')} of the queue will go.`),
    checkpoints > 0 && el('label', { class: 'check' }, el('input', { type: 'checkbox', name: 'files' }), ' Put the files back, too'),
  ].filter(Boolean), { does: 'Go back', danger: true });
  if (!d) return false;
  const body = { to: '#' + n };
  if (d.data.get('files')) {
    const files = await act('POST', taskPath(task, '/rewinds'), { ...body, files: true, dry_run: true });
    if (!(await agreed(files.restore, 'Go back, and put these files back?'))) return false;
    Object.assign(body, { files: true, plan: files.restore.plan });
  }
  const { done, back } = await change(task, 'POST', taskPath(task, '/rewinds'), body);
  const branches = `/tasks/${encodeURIComponent(task)}/compare?with=${encodeURIComponent(done.branch)}`;
  return { id: done.id, fork: noteChange(task, done, `The task is back at before #${n}.`, { ...back && undoable(task, back), link: done.branch && ['Compare', branches] }) };
}

// again takes the task back to before what a person said there, whose words become the draft.
export async function again(task, n, draft) {
  const { items: [{ text, images }] } = await get(taskPath(task, `/messages?after=${n - 1}&limit=1`));
  const { id, fork } = await rewind(task, n);
  if (!id) return false;
  if (fork) draft = new Draft(id, () => {});
  if (images?.length) draft.set({ images: [...draft.images, ...images.filter((i) => i.startsWith('data:'))] }, 0);
  await draft.append(text || '');
  if (fork) location.href = fork;
  return true;
}

// agreed shows what a restore would do to each file, and asks.
async function agreed({ files, conflicts, lost, workspace }, title) {
  const list = (what, items) => items.length > 0 && [el('p', {}, what), el('ul', { class: 'files' }, items.map((f) => el('li', {}, f.path + ': ' + (f.why || f.change))))];
  if (!files.length && !conflicts.length && !lost.length) {
    note('All files are as they were there.');
    return null;
  }
  return dialog(title, [list(`${counted(files.length, 'file')} would change in ${workspace}:`, files), list('Changed by others since, and kept as they are:', conflicts),
    list('Their content is lost:', lost)], { does: 'Put them back', danger: true });
}

export async function restore(task) {
  const { items } = await get(taskPath(task, '/checkpoints'));
  if (!items.length) {
    note('The task has no checkpoint: it changed no file.');
    return;
  }
  const list = el('select', { name: 'at', size: Math.min(10, items.length), autofocus: true },
    items.map((c, i) => el('option', { value: 'c' + c.checkpoint, selected: i === items.length - 1 },
      `c${c.checkpoint} ${c.title || c.reason} (${counted(c.files, 'file')})`)));
  const d = await dialog('Put files back to a checkpoint', field('Checkpoint', list), { does: 'Show what would change' });
  if (d && d.data.get('at')) await restoreTo(task, d.data.get('at'));
}

// restoreTo puts files back to a checkpoint, after a preview.
export async function restoreTo(task, checkpoint) {
  const path = taskPath(task, '/checkpoints/' + checkpoint + '/restore');
  const plan = await act('POST', path, { dry_run: true });
  if (!(await agreed(plan, `Put files back to ${checkpoint}?`))) return;
  const { done, back } = await change(task, 'POST', path, { plan: plan.plan });
  noteChange(task, done, 'The files are back.', back && undoable(task, back));
}

// copy puts the command that goes on with the task into the clipboard.
export async function copyCommand(task) {
  await navigator.clipboard.writeText('roost resume ' + task);
  note('Copied: roost resume ' + task);
}

// bar is the row of a task's acts.
export const bar = (task, drop) => el('div', { id: 'task-acts', class: 'acts' },
  button('Rename', tried(() => rename(task)), { 'data-does': 'rename' }),
  button('Tags', tried(() => tag(task)), { 'data-does': 'tag' }),
  button('Pin', tried(() => pin(task)), { 'data-does': 'pin' }),
  button('Fork', tried(() => fork(task)), { 'data-does': 'fork' }),
  button('Condense', tried(() => condense(task)), { 'data-does': 'condense' }),
  button('Restore files', tried(() => restore(task)), { 'data-does': 'restore' }),
  button('Undo', tried(() => undo(task)), { 'data-does': 'undo' }),
  button('Copy command', tried(() => copyCommand(task)), { 'data-does': 'copy' }),
  button('Delete', drop, { 'data-does': 'delete', class: 'danger' }));
