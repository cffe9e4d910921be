// What this browser keeps, as JSON by name. A browser may keep nothing, or no more; the page works without it.

export function stored(slot, none) {
  try {
    return JSON.parse(localStorage.getItem(slot)) || none;
  } catch {
    return none;
  }
}

// store keeps a value; undefined removes it.
export function store(slot, value) {
  try {
    if (value === undefined) localStorage.removeItem(slot);
    else localStorage.setItem(slot, JSON.stringify(value));
  } catch { /* nothing is kept */ }
}
