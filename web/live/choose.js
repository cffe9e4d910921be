// What a run goes with: the mode, the model, what it may do unasked and its limits, chosen from what the server knows.

import { noteChange } from './actions.js';
import { act, get, taskPath } from './api.js';
import { combobox, offers } from './complete.js';
import { store, stored } from './storage.js';
import { dialog, el, field, tried } from './ui.js';
import { Writing } from './writing.js';

const usual = { placeholder: 'as the settings say' };

// modelBox is a field for a model, with the provider's. Who takes a model from the list takes its provider.
const modelBox = (task, model, provider) => combobox({ name: 'model', ...usual, ...model }, (text, signal) => offers(task, 'model', text, signal), (i) => { provider.value = i.from; });
const modeBox = (task, mode, folder) => combobox({ name: 'mode', ...usual, ...mode }, (text, signal) => offers(task, 'mode', text, signal, folder?.()));

// switchModel and switchMode choose what the next run of a task goes with, and those after it.
export async function switchModel(task, words = '') {
  const was = await get(taskPath(task));
  const provider = el('input', { name: 'provider', value: was.provider || '' });
  const d = await dialog('Model of the next run', [field('Model', modelBox(task, { value: words || was.model || '', autofocus: true, required: true }, provider)),
    field('Provider', provider)], { does: 'Use it' });
  if (d) await change(task, { model: d.data.get('model').trim(), provider: d.data.get('provider').trim() }, { model: was.model, provider: was.provider }, 'The next run goes with ' + d.data.get('model').trim() + '.');
}

export async function switchMode(task, words = '') {
  const was = await get(taskPath(task));
  const d = await dialog('Mode of the next run', field('Mode', modeBox(task, { value: words || was.mode || '', autofocus: true, required: true })), { does: 'Use it' });
  if (d) await change(task, { mode: d.data.get('mode').trim() }, { mode: was.mode }, 'The next run is in the mode ' + d.data.get('mode').trim() + '.');
}

async function change(task, now, was, text) {
  noteChange(task, await act('PATCH', taskPath(task), now), text, { does: 'Undo', act: tried(() => act('PATCH', taskPath(task), was)) });
}

// start asks for what a new task needs. What was chosen last is the proposal; the words are a draft of their own.
export async function start(workspaces = []) {
  const last = stored('roost-start', {});
  const recent = await get('/v1/tasks?limit=100').then(({ items }) => items.map((t) => t.workspace), () => []);
  const folders = [...new Set([...workspaces, ...recent].filter(Boolean))];
  const input = (name, label, more = {}) => field(label, el('input', { name, value: last[name] || '', ...more }));
  const workspace = el('input', { name: 'workspace', required: true, list: 'workspaces', value: last.workspace || folders[0] || '' });
  const zone = el('div', {});
  const writing = new Writing('', {
    properties: { name: 'text', rows: 4, 'data-rows': 4, autofocus: true, 'aria-label': 'What to do' }, folder: () => workspace.value, zone,
  });
  writing.onshow = () => { writing.words.required = !writing.draft.images.length; };
  writing.onshow();
  const provider = el('input', { name: 'provider', value: last.provider || '', ...usual });
  zone.append(el('datalist', { id: 'workspaces' }, folders.map((w) => el('option', { value: w }))),
    el('div', { class: 'field' }, el('span', {}, 'What to do'), writing.box, el('div', { class: 'acts' }, writing.pick)),
    field('Folder', workspace),
    field('Without asking it may', el('select', { name: 'approve' }, [['', 'as the settings say'], ['ask', 'do nothing'], ['read', 'read'],
      ['edits', 'read and edit files'], ['all', 'do everything']].map(([v, t]) => el('option', { value: v, selected: last.approve === v }, t)))),
    el('details', { open: Boolean(last.mode || last.model || last.provider || last.max_cost || last.max_turns) }, el('summary', {}, 'Mode, model and limits'),
      field('Mode', modeBox('', { value: last.mode || '' }, () => workspace.value)),
      field('Model', modelBox('', { value: last.model || '' }, provider)),
      field('Provider', provider),
      input('max_cost', 'At most this many dollars', { inputmode: 'decimal', pattern: '[0-9]*[.]?[0-9]*', title: 'an amount such as 0.50' }),
      input('max_turns', 'At most this many requests to the model', { inputmode: 'numeric', pattern: '[0-9]*', title: 'a whole number' })));
  const d = await dialog('Start a task', zone, { does: 'Start' });
  const closed = writing.draft.close().catch(() => {});
  if (!d) return;
  await closed;
  const { text: _, ...v } = Object.fromEntries([...d.data].map(([name, value]) => [name, String(value).trim()]));
  store('roost-start', v);
  const sent = await writing.draft.toSend();
  const limits = { max_cost: v.max_cost || undefined, max_turns: v.max_turns ? +v.max_turns : undefined };
  const made = await act('POST', '/v1/tasks', {
    workspace: v.workspace, message: sent.words, origin: 'web', approve: v.approve || undefined, mode: v.mode || undefined,
    provider: v.provider || undefined, model: v.model || undefined, limits: v.max_cost || v.max_turns ? limits : undefined,
  }, sent.key);
  writing.draft.taken(sent);
  location.href = '/tasks/' + encodeURIComponent(made.id);
}
