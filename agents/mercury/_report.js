"use strict";
// Filters the findings. Without it the page shows them all.
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const articles = [...document.querySelectorAll("article")];
  const chosen = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
  const update = () => {
    const severities = chosen("severity");
    const kinds = chosen("kind");
    const words = form.elements.words.value.toLowerCase().trim();
    let shown = 0;
    for (const article of articles) {
      const fits = severities.has(article.dataset.severity) && kinds.has(article.dataset.kind)
        && article.textContent.toLowerCase().includes(words);
      article.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    form.elements.shown.value = `${shown} of ${articles.length} shown`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
})();
