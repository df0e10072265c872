// Closes the list of files when the page has less than 900 px, where it leaves a notebook too narrow to read.
// mqlab.cli.lab puts it into JupyterLab's page.
(function closeTheList(tries) {
  if (!window.jupyterapp) return tries && setTimeout(closeTheList, 100, tries - 1);
  window.jupyterapp.restored.then(() => {
    const narrow = window.matchMedia("(max-width: 899px)");
    const follow = () => narrow.matches && window.jupyterapp.shell.collapseLeft();
    narrow.addEventListener("change", follow);
    follow();
  });
})(600);
