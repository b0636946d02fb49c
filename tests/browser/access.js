/**
 * What a page must offer to everybody, checked where it is drawn: names, roles, labels, contrast, target size, focus.
 * Answers a list of sentences, one for each fault. Run inside the page by test_access.py.
 */
() => {
  const faults = [];
  const seen = (node) => node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && node.getBoundingClientRect().width > 0;
  const hidden = (node) => node.closest("[aria-hidden=true], [hidden], .offscreen") !== null;
  const where = (node) => `<${node.tagName.toLowerCase()}${node.id ? ` #${node.id}` : ""}${node.className?.baseVal === undefined && node.className ? ` .${String(node.className).split(" ").join(".")}` : ""}> ${(node.textContent ?? "").trim().slice(0, 40)}`;
  const fault = (node, text) => faults.push(`${text}: ${where(node)}`);

  // --- names
  const named = (node) => {
    const by = (node.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("");
    const label = node.id ? document.querySelector(`label[for="${CSS.escape(node.id)}"]`) : null;
    const visible = [...node.childNodes].map((child) => (child.nodeType === 3 ? child.textContent : child instanceof Element && !hidden(child) ? child.textContent : "")).join("");
    return (node.getAttribute("aria-label") || by || label?.textContent || node.closest("label")?.textContent || visible || node.getAttribute("title") || node.getAttribute("alt") || "").trim();
  };
  const CONTROLS = "button, a[href], input, select, textarea, summary, [role=button], [role=slider], [role=tab], [role=listbox], [role=tree], [role=dialog], dialog[open], [role=option], [role=treeitem], img";
  for (const node of document.querySelectorAll(CONTROLS)) {
    if (seen(node) && !hidden(node) && !named(node)) fault(node, "has no name");
  }

  // --- roles and what they need
  const NEEDS = { slider: ["aria-valuenow", "aria-valuemin", "aria-valuemax"], option: ["aria-selected"], tab: ["aria-selected"], combobox: ["aria-expanded"], checkbox: [] };
  const INSIDE = { option: "[role=listbox], select, datalist", tab: "[role=tablist]", treeitem: "[role=tree]", row: "[role=table], [role=grid], table" };
  const ROLES = new Set(["alert", "button", "checkbox", "combobox", "dialog", "group", "heading", "img", "list", "listbox", "listitem", "log", "meter", "navigation", "none", "option", "presentation", "progressbar", "region", "row", "search", "slider", "status", "tab", "table", "tablist", "tabpanel", "toolbar", "tree", "treeitem", "graphics-document", "link"]);
  for (const node of document.querySelectorAll("[role]")) {
    const role = node.getAttribute("role");
    if (!ROLES.has(role)) fault(node, `has the role ${role}, which does not exist`);
    if (!seen(node)) continue;
    for (const need of NEEDS[role] ?? []) if (!node.hasAttribute(need)) fault(node, `is a ${role} without ${need}`);
    if (INSIDE[role] && !node.closest(INSIDE[role])) fault(node, `is a ${role} outside of ${INSIDE[role]}`);
  }
  for (const node of document.querySelectorAll("[aria-controls], [aria-labelledby], [aria-describedby], [aria-activedescendant]")) {
    for (const name of ["aria-controls", "aria-labelledby", "aria-describedby", "aria-activedescendant"]) {
      for (const id of (node.getAttribute(name) ?? "").split(" ").filter(Boolean)) {
        if (!document.getElementById(id)) fault(node, `${name} names #${id}, which is not there`);
      }
    }
  }
  const ids = new Map();
  for (const node of document.querySelectorAll("[id]")) {
    if (ids.has(node.id)) fault(node, "has an id that is given twice");
    ids.set(node.id, node);
  }
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) fault(node, "changes the order of focus");
  for (const node of document.querySelectorAll("[aria-hidden=true]")) {
    const inside = [...node.querySelectorAll("button, a[href], input, [tabindex]")].find((each) => seen(each) && each.tabIndex >= 0);
    if (inside) fault(inside, "can be focused but is hidden from readers");
  }
  for (const node of document.querySelectorAll("button button, a button, button a, [role=button] button")) fault(node, "is a control inside a control");

  // --- the document
  if (!document.documentElement.lang) faults.push("the document has no language");
  if (!document.title) faults.push("the document has no title");
  if (document.querySelectorAll("main").length !== 1) faults.push("there is not one main");
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].filter((node) => seen(node) || node.classList.contains("offscreen")).map((node) => Number(node.tagName[1]));
  if (levels[0] !== 1 && levels.length) faults.push(`the first heading is of level ${levels[0]}`);
  levels.forEach((level, n) => n && level > levels[n - 1] + 1 && faults.push(`a heading of level ${level} follows one of level ${levels[n - 1]}`));
  for (const node of document.querySelectorAll("ul > *, ol > *")) if (!["LI", "TEMPLATE"].includes(node.tagName)) fault(node, "is in a list and no entry");

  // --- contrast
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = colour;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const ground = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) {
      const colour = rgba(getComputedStyle(each).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.textContent.trim() || judged.has(node) || !seen(node) || node.closest(".offscreen, :disabled, [aria-disabled=true], svg, noscript, script, datalist, option")) continue;
    judged.add(node);
    const style = getComputedStyle(node);
    const back = ground(node);
    const fore = over(rgba(style.color), back);
    const [a, b] = [light(fore), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) fault(node, `has a contrast of ${ratio.toFixed(2)}`);
  }

  // --- targets
  for (const node of document.querySelectorAll("button, a[href], input, select, textarea, summary, [role=tab], [role=option], [role=treeitem]")) {
    if (!seen(node) || hidden(node) || node.closest("p, li > span") || getComputedStyle(node).display === "inline") continue;
    const target = node.matches("input[type=checkbox], input[type=radio]") ? node.closest("label") ?? node : node;
    const box = target.getBoundingClientRect();
    if (box.height < 23.5 || (box.width < 23.5 && !node.classList.contains("tree-twist"))) fault(node, `is ${box.width.toFixed(0)} by ${box.height.toFixed(0)} pixels`);
  }

  // --- clipped text of controls
  for (const node of document.querySelectorAll("button, .tab")) {
    const whole = getComputedStyle(node).textOverflow === "ellipsis" && node.title;
    if (seen(node) && !hidden(node) && !whole && node.scrollWidth > node.clientWidth + 2) fault(node, "is cut off");
  }
  return faults;
}
