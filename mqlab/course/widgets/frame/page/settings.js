// Settings that play at once: a change of any control inside el, or Enter in one of its fields, asks for wish(), but only
// if it differs from the last one. JupyterLab keeps the change event of Enter away from fields, so Enter is heard here.
export function onceChanged(el, wish, onWish) {
  let last = null;
  const look = () => {
    const now = JSON.stringify(wish());
    if (now === last) return;
    last = now;
    onWish(wish());
  };
  el.addEventListener("change", look);
  el.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.tagName === "INPUT") look();
  });
  // What the controls were just set to needs no playing.
  return { known: () => (last = JSON.stringify(wish())) };
}
