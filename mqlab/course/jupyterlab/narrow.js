// Closes the list of files when the page opens with less than 900 px, where it leaves a notebook too narrow to read.
// mqlab.cli.lab puts it into JupyterLab's page.
(function closeTheList(tries) {
  if (!window.jupyterapp) return tries && setTimeout(closeTheList, 100, tries - 1);
  window.jupyterapp.restored.then(() => {
    if (window.innerWidth < 900) window.jupyterapp.shell.collapseLeft();
  });
})(600);
