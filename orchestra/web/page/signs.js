/** What a snapshot is, as a sign, a word and a tone: colour alone says nothing. */

import { FLAG } from "./columns.js";

export function signOf(flags, triggers = []) {
  if (flags & FLAG.damaged) return { sign: "⚠", word: "damaged", tone: "bad" };
  if (flags & FLAG.error) return { sign: "✖", word: "error", tone: "bad" };
  if (flags & FLAG.rolledBack) return { sign: "↩", word: "rolled back", tone: "warn" };
  if (flags & FLAG.pruned) return { sign: "∅", word: "pruned", tone: "dim" };
  if (flags & FLAG.pinned) return { sign: "◆", word: "kept", tone: "mark" };
  if (flags & FLAG.note) return { sign: "✎", word: "note", tone: "mark" };
  if (triggers.includes("user_requested")) return { sign: "◆", word: "by hand", tone: "mark" };
  if (flags & FLAG.marked) return { sign: "●", word: "marked", tone: "accent" };
  return { sign: "·", word: "", tone: "dim" };
}
