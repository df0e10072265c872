// One question to the kernel after the other: what is pressed while one is answered waits for its turn, and the
// controls keep the keyboard's focus meanwhile. A question that fails does not keep the next ones from being asked.
export function inTurn(ask) {
  let last = Promise.resolve();
  return (...question) => (last = last.catch(() => {}).then(() => ask(...question)));
}
