// Things that belong together light up together: each element is registered with its links, a link is any text.
export function linkBook() {
  const byLink = new Map();
  let lit = new Set();
  return {
    add(node, links) {
      for (const link of links) byLink.set(link, [...(byLink.get(link) || []), node]);
    },
    light(links) {
      const next = new Set(links.flatMap((link) => byLink.get(link) || []));
      for (const node of lit) if (!next.has(node)) setLit(node, false);
      for (const node of next) if (!lit.has(node)) setLit(node, true);
      lit = next;
    },
  };
}

// A lit element has an outline, not only another colour, and says so to a screen reader.
function setLit(node, on) {
  node.classList.toggle("mq-lit", on);
  if (on) node.setAttribute("aria-current", "true");
  else node.removeAttribute("aria-current");
}
