// Where a widget of the kernel meets its box in the page. A cell's saved output is the box alone, as HTML: an entry for
// the widget in it would be "model not found" in a notebook that is opened again without its kernel. So the widget tells
// the page under which name ("place") it mounts, and whichever of the two comes second, box or widget, finds the other.
// A box's own script calls mountedAt; it may run again, and in other pages it finds nothing.

export function mounts() {
  return (window.mqlabMounts ||= new Map());
}

export function boxesAt(place) {
  return document.querySelectorAll(`[data-mqlab-place="${place}"]`);
}

// The widget's side: mount(box) makes a box alive; it is called once for each box.
export function offerMount(place, mount) {
  const once = (box) => {
    if (box.dataset.mounted === place) return;
    box.dataset.mounted = place;
    mount(box);
  };
  mounts().set(place, once);
  boxesAt(place).forEach(once);
}
