// One label and one native control a knob, so that keyboard and screen reader work as everywhere; below, the answer.
function render({ model, el }) {
  el.classList.add("xinfer-explorer");
  const form = el.appendChild(document.createElement("form"));
  form.addEventListener("submit", (event) => event.preventDefault());
  const shown = el.appendChild(document.createElement("div"));
  shown.setAttribute("role", "region");
  shown.setAttribute("aria-label", "what the controls show");
  shown.setAttribute("aria-live", "polite");
  const chosen = [...model.get("chosen")];
  let busy = false, waiting = false;

  // One question at a time: while a slider is dragged, only the newest place is asked for next.
  const ask = () => {
    if (busy) { waiting = true; return; }
    busy = true;
    waiting = false;
    const number = (model.get("answer").number || 0) + 1;
    model.set("asked", { number, chosen: [...chosen] });
    model.save_changes();
  };
  const answered = () => {
    shown.innerHTML = model.get("answer").html;
    busy = false;
    if (waiting) ask();
  };

  model.get("controls").forEach((control, place) => {
    const row = form.appendChild(document.createElement("div"));
    const label = row.appendChild(document.createElement("label"));
    const slider = control.kind === "slider";
    const input = row.appendChild(document.createElement(slider ? "input" : "select"));
    input.id = `xinfer-${Math.random().toString(36).slice(2)}`;
    label.htmlFor = input.id;
    label.textContent = control.label;
    if (slider) {
      input.type = "range";
      input.min = 0;
      input.max = control.options.length - 1;
      input.step = 1;
    } else {
      control.options.forEach((words, number) => input.add(new Option(words, number)));
    }
    input.value = chosen[place];
    const words = slider ? row.appendChild(document.createElement("output")) : null;
    if (words) words.htmlFor = input.id;
    const say = () => {
      if (words) {
        words.textContent = control.options[chosen[place]];
        input.setAttribute("aria-valuetext", words.textContent);
      }
    };
    say();
    input.addEventListener("input", () => { chosen[place] = Number(input.value); say(); ask(); });
    // JupyterLab has its own meaning for keys; here they belong to the control.
    input.addEventListener("keydown", (event) => event.stopPropagation());
  });
  shown.innerHTML = model.get("answer").html;
  model.on("change:answer", answered);
  return () => model.off("change:answer", answered);
}

export default { render };
