// What a form did is told once: a page that is loaded again or shared says no more.
const address = new URL(location);
if (address.searchParams.has("done")) {
  address.searchParams.delete("done");
  history.replaceState(history.state, "", address);
}
