/* Sets the chosen theme before anything is painted, so that nothing flashes. A plain script, not a module. */
(() => {
  try {
    const theme = localStorage.getItem("orchestra-theme");
    if (theme === "light" || theme === "dark") {
      document.documentElement.dataset.theme = theme;
    }
  } catch {
    /* storage may be off; the system's theme is used */
  }
})();
