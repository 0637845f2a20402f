// JSON as text, where parsing and printing would change a long number.

function endOfString(text, begin) {
  for (let i = begin + 1; i < text.length; ++i) {
    if (text[i] === "\\") ++i;
    else if (text[i] === '"') return i;
  }
  return text.length;
}

/** The members of an object: [[name, its value's text], ...]. `text` must be JSON; another value than
 *  an object has none. */
export function split(text) {
  const members = [];
  let depth = 0;
  let name = null;
  let begin = -1; // of the value's text
  for (let i = 0; i < text.length; ++i) {
    const c = text[i];
    if (depth === 0 && c !== "{" && c.trim()) break;
    if (c === '"') {
      const end = endOfString(text, i);
      if (depth === 1 && begin < 0) name = JSON.parse(text.slice(i, end + 1));
      i = end;
    } else if (c === "{" || c === "[") {
      ++depth;
    } else if (c === ":" && depth === 1 && begin < 0) {
      begin = i + 1;
    } else if (depth === 1 && (c === "," || c === "}")) {
      if (name !== null && begin >= 0) members.push([name, text.slice(begin, i).trim()]);
      [name, begin] = [null, -1];
      if (c === "}") break;
    } else if (c === "}" || c === "]") {
      --depth;
    }
  }
  return members;
}

/** The object of these members, without those whose text is null. */
export function join(members) {
  return `{${members.filter(([, text]) => text !== null).map(([name, text]) => `${JSON.stringify(name)}: ${text}`).join(", ")}}`;
}

/** The members with the value of `name` replaced, or added at the end; null: taken out. */
export function withMember(members, name, text) {
  return members.some(([each]) => each === name) ? members.map((each) => (each[0] === name ? [name, text] : each)) : [...members, [name, text]];
}
