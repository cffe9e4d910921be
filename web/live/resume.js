// What a person is told and asked before a task goes on: where it continues, what is different since the last run, and
// what must be decided. The service finds it, by the checks of the run itself.

import { get, taskPath } from './api.js';
import { dialog, el, field } from './ui.js';

const places = {
  in_place: (tool) => `It continues in place: in the storage of ${tool}. Its files stay as ${tool} writes them, and the originals are kept.`,
  fork: (tool) => `It continues as a fork: a new task of Roost. The files of ${tool} are not written.`,
};

// Codes of refusals that decisions answers.
export const askable = ['untrusted_settings', 'other_model', 'unknown_profile', 'workspace_missing'];

const names = ['workspace', 'provider', 'model', 'mode', 'stand_in'];

const input = (name, label, more = {}) => field(label, el('input', { name, autocomplete: 'off', dir: 'auto', ...more }));

const radio = (value, text, checked) => el('label', { class: 'check' }, el('input', { type: 'radio', name: 'settings', value, checked }), ' ' + text);

// fields are what a person decides by for a problem, and does is the button's text.
function fields(ask, plan) {
  switch (ask?.code) {
    case 'untrusted_settings':
      return { of: [radio('own_settings', 'Go on with my own settings', true), radio('trust_settings', 'Accept the policy, address and limits that came with it', false)] };
    case 'other_model':
      return { does: 'Go on with ' + ask.model, sets: { model: ask.model } };
    case 'unknown_profile':
      return { of: input('stand_in', 'A profile or provider of yours that answers instead', { required: true, autofocus: true, placeholder: 'anthropic' }) };
    case 'workspace_missing':
      return { of: input('workspace', 'Folder to work in', { required: true, autofocus: true, value: plan.workspace }) };
  }
  return { open: !!ask };
}

// decisions asks until a run can begin. It gives the members that the request needs, join when a run works on the task
// already, and null when the person does not go on.
export async function decisions(task) {
  const chosen = {}, told = new Set();
  for (let first = true; ; first = false) {
    const plan = await get(taskPath(task, '/resume?' + new URLSearchParams(chosen)));
    if (plan.run) return { join: true };
    const ask = plan.asks[0];
    const place = plan.first && places[plan.place];
    const fresh = plan.notes.filter((n) => !told.has(n) && !(chosen.workspace && n.startsWith('workspace: ')));
    if (!ask && !fresh.length && !(first && place)) return { chosen };
    for (const n of plan.notes) told.add(n);
    const { of, does = 'Go on', sets, open } = fields(ask, plan);
    const d = await dialog('Continue the task?', [
      place && el('p', { class: 'place' }, places[plan.place](plan.tool || 'another tool')),
      plan.notes.length > 0 && [el('p', {}, 'Different since the last run:'), el('ul', { class: 'some' }, plan.notes.map((n) => el('li', { dir: 'auto' }, n)))],
      ask && el('p', { class: 'notice', role: 'alert' }, ask.detail || ask.title), of,
      el('details', { open }, el('summary', {}, [plan.model || 'Model', plan.provider, plan.mode && 'mode ' + plan.mode].filter(Boolean).join(', ') + (plan.workspace ? ' · ' + plan.workspace : '')),
        input('provider', 'Provider', { placeholder: plan.provider || 'as the settings say', value: chosen.provider || '' }),
        input('model', 'Model', { placeholder: plan.model || 'as the settings say', value: sets ? '' : chosen.model || '' }),
        input('mode', 'Mode', { placeholder: plan.mode || 'as the settings say', value: chosen.mode || '' }),
        ask?.code !== 'workspace_missing' && input('workspace', 'Folder', { placeholder: plan.workspace, value: chosen.workspace || '' }))], { does });
    if (!d) return null;
    Object.assign(chosen, sets);
    for (const name of names) if (d.data.get(name)?.trim()) chosen[name] = d.data.get(name).trim();
    if (d.data.get('settings')) chosen[d.data.get('settings')] = true;
  }
}
