// Knobs over a picture. The kernel stores the first picture as plain HTML; where a kernel answers, this script puts the
// controls into it. So a saved notebook never holds a widget that nobody answers for: without a kernel the picture stays.
const PATIENCE = 3000; // milliseconds without an answer, before the page says so
const PACE = 700; // milliseconds from one picture to the next, while it plays
const LOST = "The kernel that drew this is gone. Run this cell again to turn its knobs.";
const BUSY = "The kernel is busy with another cell; the picture follows.";

function element(parent, tag, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(tag), properties));
}

function mount(model, el) {
  el.replaceChildren();
  el.classList.add("xinfer-explorer");
  const form = element(el, "form");
  form.addEventListener("submit", (event) => event.preventDefault());
  const note = element(el, "p", { hidden: true });
  note.setAttribute("role", "status");
  const shown = element(el, "div");
  shown.setAttribute("role", "region");
  shown.setAttribute("aria-label", "what the controls show");
  shown.setAttribute("aria-live", "polite");
  const chosen = [...model.get("chosen")];
  const players = [];
  let busy = false, waiting = false, timer = 0;

  const say = (words, usable) => {
    note.textContent = words;
    note.hidden = words === "";
    form.hidden = !usable;
  };
  const kernel = () => model.widget_manager?.kernel;
  // JupyterLab's manager knows its kernel; others (undefined) do not say.
  const gone = () => kernel() === null || kernel()?.isDisposed || kernel()?.connectionStatus === "disconnected";
  const overdue = () => {
    const working = !gone() && kernel()?.status === "busy";
    say(working ? BUSY : LOST, working);
    if (working) timer = setTimeout(overdue, PATIENCE);
    else players.forEach((player) => player.stop());
  };
  // One question at a time: while a slider is dragged, only the newest place is asked for next.
  const ask = () => {
    if (busy) { waiting = true; return; }
    busy = true;
    waiting = false;
    clearTimeout(timer);
    if (gone()) { busy = false; overdue(); return; }
    timer = setTimeout(overdue, PATIENCE);
    model.set("asked", { number: (model.get("answer").number || 0) + 1, chosen: [...chosen] });
    model.save_changes();
  };
  const answered = () => {
    clearTimeout(timer);
    say("", true);
    shown.innerHTML = model.get("answer").html;
    busy = false;
    if (waiting) ask();
    else players.forEach((player) => player.follow());
  };
  // The kernel went away, or is back: its answer, or its silence, tells which.
  const askAgain = () => { busy = false; ask(); };

  model.get("controls").forEach((control, place) => {
    const row = element(form, "div");
    const label = element(row, "label", { textContent: control.label });
    const slider = control.kind === "slider";
    const input = element(row, slider ? "input" : "select");
    input.id = `xinfer-${Math.random().toString(36).slice(2)}`;
    label.htmlFor = input.id;
    if (slider) Object.assign(input, { type: "range", min: 0, max: control.options.length - 1, step: 1 });
    else control.options.forEach((words, number) => input.add(new Option(words, number)));
    input.value = chosen[place];
    const words = slider ? element(row, "output") : null;
    if (words) words.htmlFor = input.id;
    const tell = () => {
      if (words) {
        words.textContent = control.options[chosen[place]];
        input.setAttribute("aria-valuetext", words.textContent);
      }
    };
    const go = (to) => { input.value = chosen[place] = to; tell(); ask(); };
    tell();
    const player = control.plays ? play(element(row, "button", { type: "button" }), control, () => chosen[place], go, shown) : null;
    if (player) players.push(player);
    input.addEventListener("input", () => { player?.stop(); go(Number(input.value)); });
    input.addEventListener("keydown", (event) => {
      // JupyterLab has its own meaning for keys; here they belong to the control.
      event.stopPropagation();
      if (player && event.key === " ") { event.preventDefault(); player.toggle(); }
    });
  });
  shown.innerHTML = model.get("answer").html;
  model.on("change:answer", answered);
  model.on("comm_live_update", askAgain);
  return () => {
    clearTimeout(timer);
    players.forEach((player) => player.stop());
    model.off("change:answer", answered);
    model.off("comm_live_update", askAgain);
  };
}

// A button that goes from one option to the next by itself. Who wants less motion gets one step a press.
function play(button, control, at, go, shown) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const last = control.options.length - 1;
  let playing = false, timer = 0;
  const show = () => {
    button.textContent = still ? "Next" : playing ? "Pause" : "Play";
    button.setAttribute("aria-label", `${button.textContent}: ${control.label}`);
    shown.setAttribute("aria-live", playing ? "off" : "polite"); // nobody can listen at this pace
  };
  const next = () => go(at() < last ? at() + 1 : 0);
  const stop = () => { playing = false; clearTimeout(timer); show(); };
  const toggle = () => {
    if (still) { next(); return; }
    if (playing) { stop(); return; }
    playing = true;
    show();
    next();
  };
  const follow = () => {
    if (!playing) return;
    clearTimeout(timer);
    if (at() < last) timer = setTimeout(next, PACE);
    else stop();
  };
  button.addEventListener("click", toggle);
  button.addEventListener("keydown", (event) => event.stopPropagation());
  show();
  return { toggle, stop, follow };
}

// Once a page knows the model: its picture may be there already, come later, or come again in another tab.
function initialize({ model, signal }) {
  const cleanups = [];
  const look = () => {
    for (const el of document.getElementsByClassName(model.get("place"))) {
      if (el.dataset.model === model.get("place")) continue;
      el.dataset.model = model.get("place");
      cleanups.push(mount(model, el));
    }
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { childList: true, subtree: true });
  look();
  signal?.addEventListener("abort", () => { observer.disconnect(); cleanups.forEach((cleanup) => cleanup()); });
}

// Where each output has a page of its own (Colab), the widget is shown as a widget.
const render = ({ model, el }) => mount(model, el);

export default { initialize, render };
