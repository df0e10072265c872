// What a stream that counts by time keeps, gives and drops, batch by batch. A group is a window and a broker, "start broker".
export function ledgerOf({ inLog, counted }) {
  const missing = inLog - counted;
  const words = missing === 0 ? "✓ each is counted." : missing === 1 ? "✗ 1 is in no count."
    : `✗ ${missing.toLocaleString("en")} are in no count.`;
  return `In the log ${inLog.toLocaleString("en")} messages, counted ${counted.toLocaleString("en")}: ${words}`;
}

// data.looks: the messages of each batch as [ms, broker]; after the last one comes a batch without messages.
export function reckoned(data, windowMs, delay, mode) {
  const shift = ((data.first_ms % windowMs) + windowMs) % windowMs; // windows begin at whole minutes of the clock
  const groups = new Map();
  const batches = [];
  const ever = new Map();
  let [before, newest, counted, inLog] = [null, null, 0, 0];
  [...data.looks, []].forEach((look, number) => {
    const watermark = newest === null ? null : newest - delay;
    const [late, touched] = [new Map(), new Set()];
    for (const [at, broker] of look) {
      const start = Math.floor((at + shift) / windowMs) * windowMs - shift;
      const key = `${start} ${broker}`;
      if (mode !== "complete" && before !== null && start + windowMs <= before) late.set(key, (late.get(key) || 0) + 1);
      else {
        groups.set(key, (groups.get(key) || 0) + 1);
        ever.set(key, (ever.get(key) || 0) + 1);
        touched.add(key);
      }
      newest = newest === null ? at : Math.max(newest, at);
    }
    const over = [...groups.keys()].filter((key) => mode !== "complete" && watermark !== null &&
      Number(key.split(" ")[0]) + windowMs <= watermark);
    const given = { update: touched.size, append: over.length, complete: groups.size }[mode];
    over.forEach((key) => groups.delete(key));
    const dropped = [...late.values()].reduce((sum, each) => sum + each, 0);
    counted += look.length - dropped;
    inLog += look.length;
    batches.push({ number, watermark, newest, dropped, late, kept: new Set(groups.keys()), given, counted, inLog,
      fresh: look.length, ever: new Map(ever) });
    before = watermark;
  });
  return batches;
}
