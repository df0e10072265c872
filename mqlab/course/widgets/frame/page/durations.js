// Milliseconds since the beginning of a story as text: +0 ms, +1.250 s, +4:45:40.
export function afterText(ms) {
  return (ms < 0 ? "-" : "+") + durationText(Math.abs(ms));
}

export function durationText(ms) {
  if (ms < 1000) return `${ms} ms`;
  const rest = ms % 1000 ? `.${String(ms % 1000).padStart(3, "0")}` : "";
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds}${rest} s`;
  const two = (number) => String(number).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(seconds % 60)}${rest}`;
}
