// Escape leads out of a box: to the notebook's cell around it, where JupyterLab's own keys work again; in a page
// without cells that take the focus it is given up. What Escape has closed inside the box prevents its default.
export function leaveOnEscape(box) {
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    event.stopPropagation();
    box.closest(".jp-Cell")?.focus();
    if (box.contains(document.activeElement)) document.activeElement.blur();
  });
}
