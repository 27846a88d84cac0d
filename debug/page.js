"use strict";
(function () {
  var link = document.getElementById("link"), hold = document.getElementById("hold");
  var held = false, last = {};
  function say(text, state) {
    link.textContent = text;
    link.className = state;
  }
  var mood = "";
  // Whoever listens hears the sentence when the state changes, not every second.
  function tell() {
    var why = document.querySelector(".why");
    if (why.className === mood) { return; }
    mood = why.className;
    document.getElementById("said").textContent = why.querySelector(".said").textContent;
  }
  function draw(parts) {
    for (var id in parts) {
      var part = document.getElementById(id);
      if (part) { part.innerHTML = parts[id]; }
    }
    tell();
  }
  var source = new EventSource("events");
  source.onmessage = function (e) {
    var parts = JSON.parse(e.data);
    if (held) {
      Object.assign(last, parts);
      return;
    }
    draw(parts);
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn || 0) + 1);
    say("Live", "live");
  };
  source.onerror = function () {
    say(source.readyState === 2 ? "No updates: too many pages are open, or access ended. Reload to try again." : "Connection lost, trying again. What you see is old.", "lost");
  };
  function toggleHold() {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    if (held) {
      say("Held: press again to go on", "");
    } else {
      draw(last);
      last = {};
      say("Live", "live");
    }
  }
  var themes = ["system", "light", "dark"], theme = 0;
  function nextTheme() {
    theme = (theme + 1) % themes.length;
    document.documentElement.dataset.theme = themes[theme];
    document.getElementById("theme-name").textContent = themes[theme];
  }
  hold.addEventListener("click", toggleHold);
  document.getElementById("theme").addEventListener("click", nextTheme);
  document.addEventListener("keydown", function (e) {
    if (e.ctrlKey || e.metaKey || e.altKey) { return; }
    if (e.key === "h") { toggleHold(); }
    if (e.key === "t") { nextTheme(); }
  });
})();
