// The ids of the events of all tasks: FEED.SEGMENT.OFFSET.SUM.SEQ-INDEX. SEQ and INDEX are 0 behind all that a line of the
// activity log announced.

function parts(id) {
  if (id === '0') return { feed: '', place: [0, 0, 0, 0] }; // before all that is kept
  const m = /^([^.]+)\.(\d+)\.(\d+)\.[0-9a-f]+\.(\d+)-(\d+)$/.exec(id || '');
  if (!m) return null;
  const whole = m[4] === '0';
  return { feed: m[1], place: [+m[2], +m[3], whole ? Infinity : +m[4], whole ? Infinity : +m[5]] };
}

// reached reports whether an event with the id `id` is at or before the cursor `at`. Ids of different activity logs have
// no order: such an event is new.
export function reached(id, at) {
  const a = parts(id), b = parts(at);
  if (!a || !b || !same(a, b)) return false;
  for (let i = 0; i < 4; i++) {
    if (a.place[i] !== b.place[i]) return a.place[i] < b.place[i];
  }
  return true;
}

const same = (a, b) => a.feed === b.feed || !a.feed || !b.feed;

// orderly reports whether two cursors can be compared.
export function orderly(a, b) {
  const x = parts(a), y = parts(b);
  return !!x && !!y && same(x, y);
}
