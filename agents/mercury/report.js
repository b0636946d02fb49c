"use strict";
// Filters the findings. Without it the page shows them all.
(() => {
  const form = document.getElementById("filters");
  if (!form) return;
  const articles = [...document.querySelectorAll("article")];
  const groups = [...document.querySelectorAll(".file"), ...document.querySelectorAll("#findings > section")];
  const texts = articles.map((each) => `${each.dataset.file} ${each.textContent}`.toLowerCase());
  const chosen = (name) => new Set([...form.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value));
  const update = () => {
    const severities = chosen("severity");
    const kinds = chosen("kind");
    const words = form.elements.words.value.toLowerCase().trim();
    let shown = 0;
    articles.forEach((article, at) => {
      const fits = severities.has(article.dataset.severity) && kinds.has(article.dataset.kind)
        && texts[at].includes(words);
      article.hidden = !fits;
      shown += fits ? 1 : 0;
    });
    for (const group of groups) {
      const left = group.querySelectorAll("article:not([hidden])").length;
      group.hidden = left === 0;
      const count = group.querySelector("h2 small");
      if (count) count.textContent = left;
    }
    document.getElementById("none").hidden = shown > 0;
    form.elements.shown.value = `${shown} of ${articles.length} shown`;
    form.querySelector("button").hidden = shown === articles.length;
  };
  form.addEventListener("input", update);
  form.addEventListener("reset", () => setTimeout(update));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update();
})();
