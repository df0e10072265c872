// One question to the kernel after the other: what is pressed while one is answered waits for its turn, and the
// controls keep the keyboard's focus meanwhile.
function inTurn(ask) {
  let last = Promise.resolve();
  return (...question) => (last = last.then(() => ask(...question)));
}
