// Rows of a run are lists of values, which are short; with the names of their columns they are objects.
export function named(names, values) {
  return Object.fromEntries(names.map((name, at) => [name, values[at]]));
}
