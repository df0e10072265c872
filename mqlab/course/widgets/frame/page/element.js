// element("button", { type: "button", onclick: go, "aria-label": "Go" }, "Go") and the same for SVG.
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svgElement(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

let lastElementNumber = 0;

// A label needs the id of its control, and ids must differ between all boards of a page.
export function freshId() {
  lastElementNumber += 1;
  return `mqlab-${Math.random().toString(36).slice(2, 8)}-${lastElementNumber}`;
}
