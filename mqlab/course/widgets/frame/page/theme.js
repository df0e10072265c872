// Colours of a board from the page's theme; --mq-1 to --mq-6 are six inks that are legible on --mq-paper.
import { element } from "./element.js";

const THEME = `
.mqlab-board { --mq-ink: var(--jp-content-font-color1, #1f2430); --mq-muted: #5b6472;
  --mq-paper: var(--jp-layout-color0, #ffffff); --mq-card: var(--jp-layout-color1, #f6f7f9); --mq-rule: #cfd4dc;
  --mq-1: #0b5fa5; --mq-2: #1b7f4b; --mq-3: #7a3e9d; --mq-4: #b3401a; --mq-5: #5b6472; --mq-6: #8a6100;
  --mq-light: #ffe9a8; --mq-focus: #0b5fa5;
  color: var(--mq-ink); background: var(--mq-paper); box-sizing: border-box; max-width: 100%; padding: 4px;
  font: 13px/1.45 system-ui, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", "PingFang SC", sans-serif; }
[data-jp-theme-light="false"] .mqlab-board { --mq-muted: #a9b2c0; --mq-rule: #4a5260;
  --mq-1: #7cbcf5; --mq-2: #6fd29b; --mq-3: #cfa3ea; --mq-4: #ff9d78; --mq-5: #a9b2c0; --mq-6: #e6c163;
  --mq-light: #5c4a10; --mq-focus: #7cbcf5; }
@media screen and (prefers-color-scheme: dark) {
  :is(body:not([data-jp-theme-light]), body.jp-Notebook[data-jp-theme-light="true"]) .mqlab-board {
  --mq-ink: #e8eaee; --mq-muted: #a9b2c0; --mq-paper: #16191f; --mq-card: #20242c; --mq-rule: #4a5260;
  --mq-1: #7cbcf5; --mq-2: #6fd29b; --mq-3: #cfa3ea; --mq-4: #ff9d78; --mq-5: #a9b2c0; --mq-6: #e6c163;
  --mq-light: #5c4a10; --mq-focus: #7cbcf5; } }
.mqlab-board *, .mqlab-board *::before { box-sizing: border-box; }
.mqlab-board button, .mqlab-board input, .mqlab-board select { font: inherit; color: var(--mq-ink); min-height: 28px; }
.mqlab-board button, .mqlab-board select, .mqlab-board input:not([type="range"]):not([type="checkbox"]) {
  background: var(--mq-card); border: 1px solid var(--mq-muted); border-radius: 4px; padding: 2px 9px; }
.mqlab-board select, .mqlab-board .mq-field { max-width: 100%; }
.mqlab-board button { cursor: pointer; }
.mqlab-board button:disabled, .mqlab-board button[aria-disabled="true"] { opacity: 0.55; cursor: default; }
.mqlab-board input[type="range"] { accent-color: var(--mq-focus); }
.mqlab-board input[type="number"] { width: 7em; }
.mqlab-board :focus-visible { outline: 2px solid var(--mq-focus); outline-offset: 2px; }
.mqlab-board .mq-row { display: flex; flex-wrap: wrap; gap: 6px 10px; align-items: center; margin: 4px 0; }
.mqlab-board .mq-field { display: inline-flex; flex-wrap: wrap; gap: 4px 6px; align-items: center; }
.mqlab-board .mq-panels { display: flex; flex-wrap: wrap; gap: 8px; align-items: flex-start; }
.mqlab-board .mq-panel { flex: 1 1 300px; min-width: 0; max-width: 100%; border: 1px solid var(--mq-rule);
  border-radius: 6px; padding: 6px 8px; overflow: auto; contain: content; }
.mqlab-board .mq-panel > h4 { margin: 0 0 4px; font-size: 13px; }
.mqlab-board .mq-note { color: var(--mq-muted); margin: 2px 0; }
.mqlab-board .mq-error { border-left: 4px solid var(--mq-4); padding: 4px 8px; white-space: pre-wrap; }
.mqlab-board .mq-lit { background: var(--mq-light); outline: 2px solid var(--mq-focus); }
.mqlab-board table { border-collapse: collapse; font-size: 12px; margin: 0; }
.mqlab-board.mqlab-board :is(th, td, tr) { text-align: left; }
.mqlab-board.mqlab-board h4 { font-weight: 600; }
.mqlab-board th, .mqlab-board td { border: 1px solid var(--mq-rule); padding: 1px 6px; text-align: left;
  vertical-align: top; }
.mqlab-board th { background: var(--mq-card); }
@media (max-width: 480px) {
  .mqlab-board table { font-size: 11px; }
  .mqlab-board :is(th, td) { padding: 1px 2px; } }
.mqlab-board { position: relative; }
.mqlab-board progress { width: 8em; }
.mqlab-board .mq-waiting { position: absolute; top: 0; left: 0; width: 100%; height: 4px; }
.mqlab-board .mq-more { margin: 2px 0 6px; }
.mqlab-board .mq-more > summary { cursor: pointer; }
.mqlab-board .mqlab-readable { overflow-x: auto; }
`;

export function addTheme(box) {
  box.prepend(element("style", {}, THEME));
}
